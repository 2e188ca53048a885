"""What the little shop sells: made-up goods, equal for equal seeds."""

from __future__ import annotations

import random
from dataclasses import dataclass

CATEGORIES = [
    "Kitchen",
    "Garden",
    "Lighting",
    "Textiles",
    "Stationery",
    "Ceramics",
    "Tools",
    "Toys",
    "Baskets",
    "Candles",
    "Clocks",
    "Woodwork",
]
QUALITIES = [
    "Amber",
    "Ash",
    "Blue",
    "Brass",
    "Calm",
    "Copper",
    "Crimson",
    "Dappled",
    "Early",
    "Folded",
    "Gentle",
    "Golden",
    "Hand-made",
    "Ivory",
    "Little",
    "Long",
    "Mossy",
    "Northern",
    "Old",
    "Pale",
    "Plain",
    "Quiet",
    "Round",
    "Rustic",
    "Silver",
    "Slow",
    "Small",
    "Soft",
    "Striped",
    "Tall",
    "Warm",
    "Wild",
]
THINGS = {
    "Kitchen": "Bowl Ladle Kettle Pan Jar Board",
    "Garden": "Trowel Planter Hose Bench Rake Can",
    "Lighting": "Lamp Lantern Shade Torch Bulb Sconce",
    "Textiles": "Blanket Cushion Towel Rug Curtain Scarf",
    "Stationery": "Notebook Pencil Envelope Stamp Ruler Inkwell",
    "Ceramics": "Vase Mug Plate Tile Pitcher Saucer",
    "Tools": "Hammer Chisel Saw Level Clamp File",
    "Toys": "Top Puzzle Kite Boat Bear Drum",
    "Baskets": "Basket Hamper Crate Tray Trug Pannier",
    "Candles": "Candle Taper Wick Holder Snuffer Tealight",
    "Clocks": "Clock Watch Hourglass Sundial Timer Pendulum",
    "Woodwork": "Stool Shelf Frame Box Hook Spoon",
}
SENTENCES = (
    "Made in small numbers by people who like to take their time.",
    "It gets better with use.",
    "Each one is a little different from the next.",
    "A good present, if you can bear to give it away.",
    "It fits where other things do not.",
    "Wipe with a dry cloth and keep it out of the rain.",
    "We have one ourselves and would not be without it.",
    "The drawing it was made from is older than the shop.",
)


@dataclass(frozen=True, slots=True)
class Product:
    """One thing on sale. `pence` keeps the price exact."""

    number: int
    title: str
    category: str
    pence: int
    stock: int
    description: str
    related: tuple[int, ...]

    @property
    def price(self) -> str:
        return f"£{self.pence // 100}.{self.pence % 100:02}"

    @property
    def slug(self) -> str:
        return self.title.lower().replace(" ", "-")

    @property
    def path(self) -> str:
        return f"/product/{self.number}-{self.slug}"


def catalogue(seed: int, count: int) -> list[Product]:
    """`count` products with different titles, spread evenly over the twelve categories, numbered from 1."""
    most = len(CATEGORIES) * len(QUALITIES) * 6
    if not 12 <= count <= most:
        raise ValueError(f"the shop can have 12 to {most} products, not {count}")
    draw = random.Random(f"shop {seed}")
    titles = {name: _titles(draw, name) for name in CATEGORIES}
    products = []
    for number in range(1, count + 1):
        category = CATEGORIES[number % len(CATEGORIES)]
        products.append(
            Product(
                number=number,
                title=titles[category].pop(),
                category=category,
                pence=draw.randrange(150, 20_000, 5),
                stock=max(0, draw.randrange(-4, 40)),
                description=" ".join(draw.sample(SENTENCES, 4)),
                related=tuple(draw.sample([n for n in range(1, count + 1) if n != number], 4)),
            )
        )
    return products


def _titles(draw: random.Random, category: str) -> list[str]:
    titles = [f"{quality} {thing}" for quality in QUALITIES for thing in THINGS[category].split()]
    draw.shuffle(titles)
    return titles
