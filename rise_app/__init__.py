"""What the pages share and needs Streamlit: bootstrap, connection, address, loaders, widgets."""

from __future__ import annotations
