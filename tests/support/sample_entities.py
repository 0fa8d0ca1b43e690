"""Seventy sample entities in four languages, such as agents write about one person's life and work, with their relations.

`OPEN` lists relations that a careful reader of the observations would add; `TOPICS` lists entities that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from index.graph.vertex import Edge, Vertex
from index.model import Statement

TEXT = """
Heron | product | heron, hardware
- River level station with an ultrasonic sensor, a radio and a battery that lasts two winters
- Eight stations stand in the Saltmarsh since 28 September 2026
- Sold as a kit of pole, box and mast; customers are river wardens and small councils
> developed_by: Tidewater Instruments

Heron battery | component | heron, power
- Two lithium iron phosphate cells of 6 Ah in series, with a protection board
- Charge is cut off above 45 degrees and below 0 degrees Celsius
- Capacity falls to 71 percent at minus 10 degrees
- Dario Venn found that the cells drift apart after about forty cycles
> part_of: Heron

Heron radio | component | heron, radio
- LoRa module on 868 MHz in Europe and 920 MHz in Japan
- Packet loss over open water is 0.3 percent at 11.4 km
- The antenna cable was replaced after salt got into the connector
> part_of: Heron

Heron enclosure | component | heron, mechanics
- Cast aluminium box with a rubber gasket, IP67
- A salt pouch in the lid keeps the electronics below 45 degrees on a summer day
- The mast base was widened after the storm of 18 October 2026
> part_of: Heron
> designed_by: Sunniva Aldergate

Heron firmware | software | heron, firmware
- Written in Rust; measures every 10 minutes and sends every hour
- Release 2.4 brings over-the-air updates in signed chunks
- The watchdog resets the board when the radio does not answer for 30 seconds
> part_of: Heron

OTA updates | feature | heron, firmware
- Firmware images are cut into signed chunks of 200 bytes and sent over LoRa at night
- An interrupted update resumes at the last chunk that was verified
- A station with less than 40 percent charge postpones its update

Gateway | system | gateway, server
- Receives the packets of the stations and writes readings to the database
- Runs on two virtual machines in Falkenstein behind HAProxy
- Was down for 94 minutes on 14 October 2026
> serves: Heron

Gateway outage 2026-10-14 | incident | gateway, incident
- A migration held a lock on the readings table from 02:10, and packets piled up until 03:44
- Petra Holloway-Finn found the lock by asking what else had happened at ten past two
- Readings were replayed from the queue; none was lost
> affected: Gateway

PostgreSQL | software | database
- Holds readings, stations and alarms; version 17
- Readings are partitioned by month, with a BRIN index on the time column
- A migration must set lock_timeout, or it blocks all writers
> used_by: Gateway

Backup runbook | document | database, operations
- The database is dumped every night with pg_dump and encrypted with age before it leaves the machine
- A restore is rehearsed on the first Monday of each quarter; the last one took 38 minutes
- Dumps are kept for 30 days in object storage in Helsinki

Alarm rules | feature | alarms
- A warning is sent when the level rises faster than 12 cm in 30 minutes
- Wardens asked for one message, not a dashboard
- A silent station raises an alarm after two missed hours

Tidewater Instruments | company | company
- Makes river level stations; five people, founded in 2022
- Office above the boat shed, electronics lab in the cellar
- Runway until August 2027 at the present rate

Sunniva Aldergate | person | person, company
- Co-founder, responsible for mechanics and production
- Learned boat building before she studied engineering
- Wants to hear bad news first and in one sentence
> founded: Tidewater Instruments

Dario Venn | person | person, company
- Electronics engineer for power and radio
- Keeps every broken board, labelled with the reason
- Leaves at four on Tuesdays to fetch his daughter
> works_at: Tidewater Instruments

Petra Holloway-Finn | person | person, company
- Writes the firmware and most of the Gateway
- No meetings before ten; works best in the afternoon
- Plays the viola in an orchestra on Wednesday evenings
> works_at: Tidewater Instruments
> maintains: Heron firmware

Odalys Brandt-Keane | person | person, customer
- Warden of the Saltmarsh for twenty years, first customer
- Wants one message that it rises faster than last time, and no dashboard
- Lends her boat for visits to the stations

Saltmarsh | place | site, trial
- Tidal marsh where eight trial stations stand; poles can be reached only by boat on a falling tide
- The base of station 3 was under water for forty minutes on 18 October 2026
> hosts: Heron field trial

Heron field trial | project | heron, trial
- Eight stations from September 2026 to March 2027, read every hour
- Two stations lost their mast in the storm of 18 October
- Odalys Brandt-Keane checks the water marks by hand every Friday
> tests: Heron

Runway and pricing | decision | company, money
- A station costs 310 euros to build and is sold for 890 euros, service included for two years
- A village, not a grower, is the customer in Japan
- Next price review in March 2027

Hiring embedded engineer | project | company, hiring
- Wanted: somebody for embedded Rust and low power electronics, four days a week
- Two interviews were held in November; second talk with Ilse Marquardt planned

Ilse Marquardt | person | person, candidate
- Designed boards for medical devices for three years and knows certification
- Asked in the interview how mistakes are talked about
- Can start in February 2027

Support rota | document | company, operations
- One person a week answers wardens within four hours, weekends excepted
- Petra Holloway-Finn has the first week of December, Dario Venn the second

包灵犀 | person | person, supplier
- 深圳的合作工厂负责人，负责电路板组装和电池来料检验
- 电池出厂前每一百个抽检五个
- 春节前后工厂停工三周，订单要在圣诞节前下

Shenzhen factory | company | supplier, hardware
- Assembles the boards and tests incoming battery cells, five of every hundred
- Closed for three weeks around the spring festival; order before Christmas
- Moved to a new hall in spring 2026; cell balance suffered for a month

Yuzuki Haranishi | person | person, partner
- Agricultural engineer who knows everybody between Kyoto and the lake
- Helps with the radio certification in Japan
- Writes long letters and short mails

Kyoto trip 2026 | event | travel, japan
- From 10 to 17 November 2026; three villages were visited with Yuzuki Haranishi
- The certification office wants the test report of the 920 MHz module in Japanese
- Stayed in a machiya near Nijo

京都 | place | travel, japan
- 原西柚希さんと錦市場を歩いた。鯖寿司がうまい
- 二条の町家に泊まった。静かで寒い
- 哲学の道は早朝がよい

錦市場 | place | travel, food
- 京都の台所と呼ばれる。漬物と包丁の店が多い
- 有次で出刃包丁を研いでもらった

Giteki certification | process | japan, radio
- Japan's technical conformity mark for radio equipment; takes eight weeks with a test house
- The 920 MHz module has a mark of its own, the antenna must be listed in its report

土鍋ごはん | recipe | food, rice
- 米二合を三十分浸水させ、強火で沸騰したら弱火で十二分、蒸らし十五分
- おこげがほしいときは最後に一分強火

味噌汁 | recipe | food, soup
- だしは昆布と鰹節。味噌は火を止めてから溶く
- 豆腐とわかめ、冬は大根と油揚げ

麻婆豆腐 | recipe | food, tofu
- 豆瓣酱先炒出红油，再下牛肉末
- 花椒要现磨，最后撒；包灵犀说我放得太少

Sourdough | recipe | food, bread
- 80 percent hydration, 20 percent whole rye, bulk fermentation of five hours at 24 degrees
- The starter is fed with rye flour twice before baking
- Baked in a cast iron pot, lid off after 25 minutes

Rye starter | thing | food, bread
- Fed every Thursday with equal weights of rye flour and water
- Sleeps in the fridge; doubles in four hours at 26 degrees when it is well

Fermented hot sauce | recipe | food, fermentation
- Red chillies with 3 percent salt, two weeks at room temperature, then blended with vinegar
- Sunniva Aldergate took three bottles

Leek and potato soup | recipe | food, soup
- Two leeks sweated in butter, floury potatoes, stock, a spoon of cream at the end
- Leeks from the garden from October on

Vegetable garden | place | garden
- Four beds of 1.2 by 4 metres, turned each year
- Leeks, tomatoes under a roof, beans, winter salad
- Slugs come from the compost side

Compost | thing | garden
- Two bins; turned in March and September, hot for about three weeks
- Leaves of diseased tomatoes must not go in, blight survives

Tomato blight | problem | garden
- Phytophthora infestans: brown leaves within days in wet summers
- A roof over the plants helps more than any spray, for the fungus needs wet leaves

Bohnen | plant | garden
- Stangenbohnen nach den Eisheiligen säen, an Haselstangen ziehen
- Die Sorte Neckarkönigin trägt bis in den Oktober

Winterbeet | plan | garden
- Feldsalat und Winterportulak ab September unter Vlies säen
- Das Beet wird nach den Bohnen mit Kompost abgedeckt

Greenhouse automation | project | garden, electronics
- A controller opens the vents above 26 degrees and closes them in wind
- Soil moisture is measured with two capacitive probes on an ESP32
> controls: Vent controller

Vent controller | device | garden, electronics
- ESP32 with a linear actuator; opens the vents by temperature, with a wind limit
- Runs from the small solar panel; sleeps between measurements

House | place | home
- Timber house of 1931, insulated in 2019, heated by a heat pump
- The gutter on the north side leaks

Heat pump | device | home, energy
- Air to water, 7 kW; the filter is cleaned each May
- The pressure in the heating circuit must be between 1.5 and 2 bar
> heats: House

Solar panels | device | home, energy
- 6.2 kW on the south roof since 2024; about 5,900 kWh a year
- The inverter limits to 70 percent until the meter is replaced

Wärmepumpenwartung | task | home, energy
- Der Filter der Wärmepumpe wird jeden Mai gereinigt
- Druck im Heizkreis prüfen: 1,5 bis 2 bar

LanceDB | software | database, search
- Embedded vector store in Rust with a Python binding; columnar files that are never changed in place
- Full text search uses BM25; an index of the IVF kind pays from tens of thousands of rows
- Old versions must be cleaned up or the disk fills

SQLite | software | database
- One writer at a time; readers go on in WAL mode
- The file must not lie on a network share

Hybrid search | concept | search
- Results of BM25 and of vectors are fused by reciprocal ranks
- Exact words find names and numbers, vectors find paraphrases

BM25 | concept | search
- Ranks by term frequency, saturated, and document length
- k1 is 1.2 and b is 0.75 unless measured otherwise

Sentence embeddings | concept | search, models
- A text becomes a vector of 384 numbers; near vectors mean similar things
- all-MiniLM-L6-v2 reads 256 tokens and English only

Reciprocal rank fusion | concept | search
- Sums one over 60 plus the rank of a document in each list
- Needs no calibration of scores between BM25 and vectors

Knowledge base | project | search, notes
- A search over my notes with LanceDB and sentence embeddings
- Chunks of 200 tokens with the heading trail before them did best
> uses: LanceDB

Obsidian | software | notes
- Notes are Markdown files in a folder; links in double brackets
- Plugins for tasks and for daily notes are in use

Daily notes | habit | notes
- One file a day from a template; open tasks are carried over on Monday
- Written in Obsidian on the phone in the train

Zettelkasten | method | notes
- One idea a note, linked to others, in own words
- Luhmann kept 90,000 cards

Rust | software | programming
- Systems language with ownership checked at compile time
- Embedded work uses no_std and the embassy runtime

Python | software | programming
- Used for scripts, plots and the gateway's report jobs
- Type hints are checked with mypy in strict mode

Go | software | programming
- The packet decoder of the gateway is written in Go
- Goroutines made the replay of the queue simple

Kubernetes | software | operations
- Considered for the gateway and rejected: two machines and systemd are enough
- Revisit when there are more than ten services

systemd | software | operations
- Units of the gateway restart after 10 seconds; the watchdog is set to 60 seconds
- Timers replaced cron in 2025

Viola | thing | music
- Built in Mittenwald in 1962, rehaired each autumn
- Petra practises the Walton concerto on it

Orchestra | group | music
- Rehearses on Wednesday evenings; concert on 12 December with Brahms and Walton
- Petra Holloway-Finn sits at the second desk of the violas

Brahms Requiem | work | music
- Performed with the town choir in December 2026
- The violas open the second movement

Sleep | topic | health
- Coffee after two costs an hour of sleep
- Phone out of the bedroom was the change with most effect

Running | habit | health
- Three times a week along the river, 8 km
- The left knee hurts above 40 km a week

Knee | problem | health
- Pain on the outside of the left knee when running downhill
- Physiotherapist advises hip strength and shorter steps
> treated_by: Physiotherapy

Physiotherapy | service | health
- Six appointments on Monday mornings, exercises for hip and foot

Boat shed | place | company
- The office of Tidewater Instruments is above it; owned by the harbour
- Damp in winter; the 3D printer stands in the dry corner

Storm of 18 October 2026 | event | trial, weather
- Gusts of 31 m/s; two masts of the field trial broke
- Water stood above the base of station 3 for forty minutes
"""

# Who reads with care would relate these. The order within a pair does not count.
OPEN = {
    frozenset(pair)
    for pair in (
        ("Heron battery", "Dario Venn"), ("Heron radio", "Dario Venn"), ("Heron firmware", "OTA updates"), ("Heron firmware", "Rust"), ("OTA updates", "Heron"),
        ("OTA updates", "Heron radio"), ("OTA updates", "Heron battery"), ("Gateway outage 2026-10-14", "Petra Holloway-Finn"), ("Gateway outage 2026-10-14", "PostgreSQL"),
        ("Backup runbook", "PostgreSQL"), ("Alarm rules", "Odalys Brandt-Keane"), ("Alarm rules", "Heron"), ("Tidewater Instruments", "Boat shed"),
        ("Petra Holloway-Finn", "Gateway"), ("Petra Holloway-Finn", "Viola"), ("Petra Holloway-Finn", "Orchestra"), ("Viola", "Orchestra"), ("Orchestra", "Brahms Requiem"), ("Viola", "Brahms Requiem"),
        ("Odalys Brandt-Keane", "Saltmarsh"), ("Odalys Brandt-Keane", "Heron field trial"), ("Odalys Brandt-Keane", "Heron"), ("Heron", "Saltmarsh"),
        ("Runway and pricing", "Tidewater Instruments"), ("Runway and pricing", "Heron"), ("Hiring embedded engineer", "Ilse Marquardt"), ("Hiring embedded engineer", "Rust"),
        ("Hiring embedded engineer", "Tidewater Instruments"), ("Ilse Marquardt", "Giteki certification"), ("Support rota", "Petra Holloway-Finn"), ("Support rota", "Dario Venn"), ("Support rota", "Tidewater Instruments"),
        ("包灵犀", "Shenzhen factory"), ("包灵犀", "麻婆豆腐"), ("Shenzhen factory", "Heron battery"), ("Shenzhen factory", "Heron"), ("Yuzuki Haranishi", "Kyoto trip 2026"), ("Yuzuki Haranishi", "Giteki certification"),
        ("Yuzuki Haranishi", "京都"), ("Kyoto trip 2026", "京都"), ("Kyoto trip 2026", "Giteki certification"), ("Giteki certification", "Heron radio"), ("京都", "錦市場"), ("Kyoto trip 2026", "Heron radio"),
        ("Sourdough", "Rye starter"), ("Fermented hot sauce", "Sunniva Aldergate"), ("Leek and potato soup", "Vegetable garden"), ("Leek and potato soup", "味噌汁"), ("土鍋ごはん", "味噌汁"), ("味噌汁", "麻婆豆腐"),
        ("Vegetable garden", "Compost"), ("Vegetable garden", "Tomato blight"), ("Vegetable garden", "Bohnen"), ("Vegetable garden", "Winterbeet"), ("Compost", "Tomato blight"), ("Bohnen", "Winterbeet"),
        ("Compost", "Winterbeet"), ("Vegetable garden", "Greenhouse automation"), ("Heat pump", "Wärmepumpenwartung"), ("Solar panels", "House"), ("Solar panels", "Vent controller"), ("Solar panels", "Heat pump"),
        ("LanceDB", "BM25"), ("LanceDB", "Hybrid search"), ("LanceDB", "Rust"), ("LanceDB", "Python"), ("LanceDB", "SQLite"), ("PostgreSQL", "SQLite"), ("Hybrid search", "BM25"), ("Hybrid search", "Reciprocal rank fusion"), ("Hybrid search", "Sentence embeddings"),
        ("BM25", "Reciprocal rank fusion"), ("Sentence embeddings", "Knowledge base"), ("Sentence embeddings", "Reciprocal rank fusion"), ("Hybrid search", "Knowledge base"), ("Knowledge base", "Obsidian"), ("Obsidian", "Daily notes"),
        ("Obsidian", "Zettelkasten"), ("Daily notes", "Zettelkasten"), ("Rust", "Python"), ("Rust", "Go"), ("Python", "Go"), ("Python", "Gateway"), ("Go", "Gateway"), ("Kubernetes", "Gateway"), ("Kubernetes", "systemd"), ("systemd", "Gateway"),
        ("Go", "Gateway outage 2026-10-14"), ("Running", "Knee"), ("Running", "Physiotherapy"), ("Storm of 18 October 2026", "Heron field trial"), ("Storm of 18 October 2026", "Saltmarsh"), ("Storm of 18 October 2026", "Heron enclosure"),
        ("Saltmarsh", "Heron enclosure"), ("Heron enclosure", "Heron field trial"), ("Heron enclosure", "Heron battery"), ("Dario Venn", "Petra Holloway-Finn"), ("Sunniva Aldergate", "Dario Venn"), ("Sunniva Aldergate", "Petra Holloway-Finn"), ("Alarm rules", "Gateway"),
        ("Gateway", "Tidewater Instruments"), ("Runway and pricing", "Kyoto trip 2026"), ("Sunniva Aldergate", "Boat shed"), ("Heron firmware", "Heron radio"), ("Heron battery", "Heron radio"), ("Heron enclosure", "Heron radio"), ("PostgreSQL", "LanceDB"),
        ("Heron firmware", "systemd"), ("Rust", "Reciprocal rank fusion"), ("Heron", "Storm of 18 October 2026"), ("Heron firmware", "Heron battery"), ("Heron field trial", "Alarm rules"), ("Saltmarsh", "Alarm rules"), ("Kyoto trip 2026", "錦市場"),
    )
} - {frozenset(("Rust", "Reciprocal rank fusion")), frozenset(("Heron firmware", "systemd"))}  # fmt: skip

TOPICS = {
    "heron": ("Heron", "Heron battery", "Heron radio", "Heron enclosure", "Heron firmware", "OTA updates", "Alarm rules", "Heron field trial", "Saltmarsh", "Storm of 18 October 2026"),
    "company": ("Tidewater Instruments", "Sunniva Aldergate", "Dario Venn", "Runway and pricing", "Hiring embedded engineer", "Ilse Marquardt", "Support rota", "Boat shed"),
    "gateway": ("Gateway", "Gateway outage 2026-10-14", "PostgreSQL", "Backup runbook", "Kubernetes", "systemd", "SQLite"),
    "japan": ("Yuzuki Haranishi", "Kyoto trip 2026", "京都", "錦市場", "Giteki certification"),
    "food": ("土鍋ごはん", "味噌汁", "麻婆豆腐", "Sourdough", "Rye starter", "Fermented hot sauce", "Leek and potato soup"),
    "garden": ("Vegetable garden", "Compost", "Tomato blight", "Bohnen", "Winterbeet", "Greenhouse automation", "Vent controller"),
    "home": ("House", "Heat pump", "Solar panels", "Wärmepumpenwartung"),
    "search": ("LanceDB", "Hybrid search", "BM25", "Sentence embeddings", "Reciprocal rank fusion", "Knowledge base"),
    "notes": ("Obsidian", "Daily notes", "Zettelkasten"),
    "programming": ("Rust", "Python", "Go"),
    "music": ("Viola", "Orchestra", "Brahms Requiem", "Petra Holloway-Finn"),
    "health": ("Sleep", "Running", "Knee", "Physiotherapy"),
    "factory": ("包灵犀", "Shenzhen factory"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entity:
    """The arguments with which an agent creates one node, and the node's relations to others."""

    name: str
    type: str
    tags: tuple[str, ...]
    observations: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]


def entities() -> Iterator[Entity]:
    """Yield all entities in the order of the text."""
    for block in TEXT.strip().split("\n\n"):
        head, *lines = block.splitlines()
        name, kind, tags = (part.strip() for part in head.split(" | "))
        stated = [line[2:].split(": ", 1) for line in lines if line.startswith("> ")]
        yield Entity(
            name,
            kind,
            tuple(tags.split(", ")),
            tuple(line[2:] for line in lines if line.startswith("- ")),
            tuple((relation, target) for relation, target in stated),
        )


def path(name: str) -> str:
    return f"Captures/default/Entities/{name}.md"


def vertices() -> list[Vertex]:
    """Return the entities as nodes of a graph, without summaries."""
    return [vertex(one) for one in entities()]


def vertex(one: Entity, **given: object) -> Vertex:
    known = {
        "path": path(one.name),
        "id": one.name,
        "name": one.name,
        "entity_type": one.type,
        "summary": None,
        "tags": one.tags,
        "aliases": (),
        "created_at": 1_000,
        "updated_at": None,
        "version": 1,
        "observations": len(one.observations),
        "last_ordinal": len(one.observations),
        "unsettled": False,
        "summary_updated_at": None,
        "observed_at": None,
        "relations": tuple(Statement(kind, target) for kind, target in one.relations),
    }
    return Vertex(**{**known, **given})


def edges() -> list[Edge]:
    return [Edge(one.name, target, kind) for one in entities() for kind, target in one.relations]


def related_names(relations: Iterable[Edge]) -> dict[str, set[str]]:
    """The names to which the relations of each entity lead, as `Graph.related_names` gives them."""
    names: dict[str, set[str]] = {}
    for edge in relations:
        names.setdefault(edge.source, set()).add(edge.target)
    return names


def observations() -> dict[str, tuple[str, ...]]:
    return {path(one.name): one.observations for one in entities()}
