"""The Add predictions page: a file, no MLflow."""

from __future__ import annotations

from rise_app.bootstrap import begin_alone

scene = begin_alone("Add predictions")
