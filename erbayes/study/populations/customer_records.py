"""A table of customers, in which persons occur several times and are written in several ways."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..._internal.arrays import BoolArray, IntArray, Seed, generator
from ..._internal.errors import need_object
from .simulated import population
from .sizes import EntitySizes

Words = NDArray[np.str_]

GIVEN = np.array(
    """Maria Anna Peter Thomas Michael Elizabeth Katherine Robert William Alexander Susan Margaret Andrew
    Daniel Julia Nicholas Christine Samuel Martha Edward Laura Simon Helen Victor Emma Frederick Irene
    Gregory Lucy Oliver Paula Raymond Sarah Theodore Ursula Walter Yvonne Benjamin Clara Dominic""".split()
)
NICKNAMES = np.array(
    """Mia Annie Pete Tom Mike Liz Kate Bob Bill Alex Sue Maggie Andy Dan Jules Nick Chris Sam Mattie Ed
    Laurie Si Nell Vic Em Fred Rena Greg Lou Ollie Polly Ray Sally Theo Ulla Walt Yve Ben Claire
    Dom""".split()
)
FAMILY = np.array(
    """Smith Jones Brown Taylor Wilson Davies Evans Thomas Johnson Roberts Walker Wright Robinson
    Thompson White Hughes Edwards Green Hall Wood Harris Lewis Martin Jackson Clarke Turner Hill
    Cooper Ward Moore Baker King Watson Harrison Morgan Allen James Scott Phillips Young Parker
    Bennett Price Griffiths Mitchell Kelly Cook Carter Richardson Bailey Collins Bell Shaw Murphy
    Miller Cox Khan Marshall Simpson Anderson Ellis Adams Wilkinson Foster Chapman Mason Gray Webb
    Rogers Powell Palmer Holmes Mills Hunt Lloyd Knight Barker Stone Fletcher Dixon Berry Lane Fuller
    Sutton Hawkins Curtis Barnett Nash Hodgson Winter Savage Moss Keller Frost""".split()
)
CITIES = np.array(
    """Leeds Bristol Cardiff Derby Exeter Glasgow Hull Ipswich Kendal London Luton Norwich Oxford Poole
    Reading Sheffield Truro Wells York Bath""".split()
)
LETTERS = np.array(list("aeinorstl"))


def customers(sizes: EntitySizes, records: int, rng: Seed = None) -> pd.DataFrame:
    """Make a table of customers whose truth is known, to try out drawing, labelling and estimation.

    Names are Zipf distributed, so that some persons share a name. A record may have a nickname, an initial, a
    slip of the pen, an older city, another year of birth, or no e-mail address, telephone number or year.

    Parameters
    ----------
    sizes : EntitySizes
        The number of records of a person.
    records : int
        Number of records, 1 or more.
    rng : Generator, int or None

    Returns
    -------
    DataFrame, (records,)
        Indexed by record. Columns given, family, born, city, email, phone, and person, which is the truth.
        Missing values are missing strings.

    Examples
    --------
    >>> from erbayes.study.populations import Zeta
    >>> table = customers(Zeta(2.5, 60), 1000, rng=1)
    >>> list(table.columns)
    ['given', 'family', 'born', 'city', 'email', 'phone', 'person']
    >>> len(table), bool((table["person"].value_counts() > 1).any())
    (1000, True)
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    rng = generator(rng)
    person = population(sizes, records, rng).to_numpy()
    persons = int(person[-1]) + 1

    given, family = _draw_by_rank(len(GIVEN), persons, rng), _draw_by_rank(len(FAMILY), persons, rng)
    born, city = rng.integers(1935, 2007, persons), rng.integers(len(CITIES), size=persons)
    phone = rng.integers(10**8, 10**9, (persons, 2))
    names = np.char.lower(GIVEN[given] + "." + FAMILY[family])
    address = np.char.add(names, (born % 100).astype(np.str_))

    def by_chance(share: float) -> BoolArray:
        return rng.random(records) < share

    first = GIVEN[given[person]]
    first = np.where(by_chance(0.15), NICKNAMES[given[person]], first)
    first = np.where(by_chance(0.05), np.char.add(first.astype("U1"), "."), first)
    last = _replace_letters(FAMILY[family[person]], by_chance(0.08), rng)
    year = born[person] + np.where(by_chance(0.03), rng.choice([-10, -1, 1, 10], records), 0)
    place = np.where(by_chance(0.12), rng.integers(len(CITIES), size=records), city[person])
    hosts = np.where(by_chance(0.2), "@post.example", "@mail.example")
    numbers = np.char.add("0", phone[person, by_chance(0.15) + 0].astype(np.str_))
    texts = {
        "given": first,
        "family": last,
        "born": year.astype(np.str_),
        "city": CITIES[place],
        "email": np.char.add(address[person], hosts),
        "phone": numbers,
    }
    columns = {name: pd.array(column, dtype="str") for name, column in texts.items()}
    table = pd.DataFrame({**columns, "person": person})
    for column, share in {"born": 0.2, "email": 0.35, "phone": 0.3}.items():
        table.loc[by_chance(share), column] = pd.NA
    table = table.sample(frac=1, random_state=rng, ignore_index=True)
    width = len(str(records - 1))
    table.index = pd.Index([f"r{i:0{width}}" for i in range(records)], dtype="str", name="record")
    return table


def _draw_by_rank(values: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw ranks with Zipf's distribution, which names have roughly."""
    weight = 1 / np.arange(1, values + 1)
    return rng.choice(values, size, p=weight / weight.sum())


def _replace_letters(words: Words, slips: BoolArray, rng: np.random.Generator) -> Words:
    """Replace one letter of some words, or leave it out."""
    written = words.astype(object)
    for i in np.flatnonzero(slips):
        word, place = str(words[i]), int(rng.integers(1, len(words[i])))
        written[i] = (
            word[:place] + (str(rng.choice(LETTERS)) if rng.random() < 0.5 else "") + word[place + 1 :]
        )
    return written.astype(np.str_)
