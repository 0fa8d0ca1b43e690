"""`python -m tests.bench.enrich [--data DIR] [--json FILE] [--seed N]`: what enrichment makes of real paragraphs, and of many.

Paragraphs are picked by a seed: English from two vaults, Japanese and Chinese from one each; German and Spanish, of
which the data has none, are ours. Their summaries and tags are for a person to judge. Drift is counted over 300
captures, each a note of its own, once with every note for itself and once with the vocabulary of those before it."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from index.encoders.embedder import Embedder, EmbedSettings
from index.encoders.word_frequency import word_ranks
from index.model import Document
from index.text.summary_and_tags import Enrichment, enrich
from index.text.tags import Vectors, are_variants
from syncd.documents.parser import parse
from tests.bench.measure import ROOT, p50, p95

PICKED = (
    ("en", "vault_kepano/**/*.md", 6, (150, 900)),
    ("en", "known_tasks_docs/notes/**/*.md", 12, (150, 900)),
    ("ja", "jsquad_valid/notes/**/*.md", 14, (100, 600)),
    ("zh", "vault_oldwinter_md/**/*.md", 14, (80, 600)),
)
DRIFT = (
    ("known_tasks_docs/notes/**/*.md", 100),
    ("jsquad_valid/notes/**/*.md", 100),
    ("vault_oldwinter_md/**/*.md", 130),
)
VOCABULARY = 100
OURS = (
    ("de", "Die Datenbank für die Messwerte läuft seit gestern auf dem neuen Server. Die nächtliche Sicherung dauert jetzt vier Minuten statt einer Stunde, weil der fehlende Index auf der Zeitspalte angelegt wurde. Offen ist noch, wie lange wir alte Messwerte aufheben."),
    ("de", "Beim Sauerteig kommt es auf die Temperatur an: Unter 22 Grad braucht der Teig fast doppelt so lang. Ich stelle die Schüssel deshalb in den ausgeschalteten Ofen mit brennender Lampe. Roggenmehl nimmt mehr Wasser auf als Weizenmehl, darum den Teig lieber etwas weicher ansetzen."),
    ("de", "Vorstellungsgespräch mit einer Bewerberin für die Stelle in der Elektronik. Sie hat drei Jahre lang Leiterplatten für Medizingeräte entworfen und kennt die Zulassung. Ihre Frage nach der Fehlerkultur im Team fand ich gut. Zweites Gespräch am Dienstag mit Dario."),
    ("de", "Wärmepumpe: Der Filter muss einmal im Jahr gereinigt werden, am besten im Mai. Der Druck im Heizkreis soll zwischen 1,5 und 2 bar liegen. Wenn er fällt, zuerst das Ausdehnungsgefäß prüfen und nicht einfach Wasser nachfüllen."),
    ("de", "Tomaten im Freien bekommen in nassen Sommern fast immer Braunfäule. Ein Dach über dem Beet hilft mehr als jedes Spritzmittel, denn der Pilz braucht nasse Blätter. Befallene Blätter sofort entfernen und nicht auf den Kompost werfen."),
    ("de", "Entscheidung: Wir verschlüsseln die Sicherungen, bevor sie das Haus verlassen. Der Schlüssel liegt im Passwortmanager und zusätzlich auf Papier im Tresor. Ein Wiederherstellungstest steht jedes Quartal im Kalender."),
    ("de", "Die Bahnverbindung nach Kopenhagen dauert mit dem Nachtzug dreizehn Stunden. Man muss in Hamburg umsteigen, die Reservierung für den Schlafwagen lohnt sich früh. Fahrräder dürfen nur in den Sommermonaten mit."),
    ("de", "Gelesen: ein Aufsatz über Vergessenskurven. Verteiltes Wiederholen schlägt langes Pauken deutlich, besonders wenn die Abstände wachsen. Karteikarten wirken nur, wenn man die Antwort selbst abruft, statt sie bloß wiederzuerkennen."),
    ("es", "La base de datos de lecturas se movió ayer al servidor nuevo. La copia de seguridad nocturna tarda ahora cuatro minutos en lugar de una hora, porque faltaba un índice en la columna de la fecha. Queda por decidir cuánto tiempo guardamos las lecturas antiguas."),
    ("es", "Receta de gazpacho para seis personas: un kilo de tomates maduros, medio pepino, un pimiento verde, ajo, aceite de oliva y vinagre de Jerez. Se tritura todo y se deja enfriar dos horas en la nevera. El pan es opcional, pero da cuerpo al gazpacho."),
    ("es", "El oxígeno disuelto en el estanque baja por la noche, cuando las plantas respiran y no producen. Si baja de cinco miligramos por litro, los peces suben a la superficie. Una bomba de aire pequeña basta para mantener el oxígeno durante el verano."),
    ("es", "Reunión con la cooperativa de regantes: quieren sensores de humedad en veinte parcelas antes de mayo. Les preocupa la cobertura de radio detrás de la colina. Ofrecimos una segunda antena en el depósito de agua, sin coste durante la prueba."),
    ("es", "Aprender un idioma con tarjetas de memoria funciona mejor si cada tarjeta lleva una frase completa. Las palabras sueltas se olvidan en pocos días. Yo repaso veinte tarjetas cada mañana y escribo un diario breve por la noche."),
    ("es", "El alquiler del taller sube un ocho por ciento en enero. El contrato permite salir con tres meses de aviso. He visto un local más pequeño cerca de la estación, con mejor luz y sin humedad en las paredes."),
    ("es", "La migración de los servidores a Kubernetes terminó el viernes. Cada servicio tiene ahora límites de memoria y comprobaciones de salud. El siguiente paso es automatizar el despliegue con la integración continua y retirar las máquinas antiguas."),
    ("es", "Notas sobre el insomnio: el café después de las dos cuesta una hora de sueño, el té no. Una habitación fresca ayuda más que cualquier pastilla. El teléfono fuera del dormitorio fue el cambio con más efecto."),
)  # fmt: skip


def paragraphs(data: Path, seed: int) -> Iterator[tuple[str, str, str]]:
    """Language, origin and text of each paragraph."""
    dice = random.Random(seed)
    for language, pattern, count, (least, most) in PICKED:
        files = sorted(data.glob(pattern))
        dice.shuffle(files)
        found = 0
        for file in files:
            parts = file.read_text("utf-8", "ignore").split("\n\n")
            # A paragraph, not a list, a table or an address.
            parts = [
                p
                for p in parts
                if least <= len(p) <= most and p[0] not in "-|`#!><*" and not re.search("http|<!--|```", p)
            ]
            if parts and found < count:
                found += 1
                yield language, f"{file.relative_to(data)}", dice.choice(parts)
    for language, text in OURS:
        yield language, "ours", text


def document(text: str) -> Document:
    """A capture that says `text`, as the daemon would name it."""
    return parse(text.encode(), "Captures/default/Untitled.md", mtime_ms=0)


def drift(data: Path, vectors: Vectors, *, prefer: bool, seed: int) -> dict[str, Any]:
    """Tags over 300 captures: how many distinct ones, how many of them used once, how many pairs are variants."""
    dice = random.Random(seed)
    notes: list[Document] = []
    for pattern, count in DRIFT:
        files = sorted(data.glob(pattern))
        dice.shuffle(files)
        texts = [text for file in files if 200 <= len(text := file.read_text("utf-8", "ignore")) <= 6_000]
        notes += [document(text) for text in texts[:count]]
    dice.shuffle(notes)
    used: Counter[str] = Counter()
    for note in notes:
        known: Mapping[str, int] = dict(used.most_common(VOCABULARY)) if prefer else {}
        bare = replace(note, tags=(), summary=None)
        used.update(enrich(bare, vocabulary=known, places=word_ranks(), vectors=vectors).tags)
    twins = sum(are_variants(one, other) for one, other in combinations(sorted(used), 2))
    once = sum(count == 1 for count in used.values())
    return {
        "captures": len(notes),
        "tags": used.total(),
        "distinct": len(used),
        "used once": once,
        "share used once": round(once / max(1, len(used)), 3),
        "pairs of variants": twins,
        "reused": round(1 - len(used) / max(1, used.total()), 3),
    }


def timed(note: Document) -> tuple[Enrichment, float]:
    """What is found, and the milliseconds that it took."""
    begun = time.perf_counter()
    found = enrich(note, vocabulary={}, places=word_ranks())
    return found, (time.perf_counter() - begun) * 1000


def write(line: str) -> None:
    """One line on stdout."""
    sys.stdout.write(line + "\n")


def main() -> None:
    """Print all of it."""
    asked = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    asked.add_argument("--data", type=Path, default=Path(os.environ.get("MEMEX_DATA", ROOT.parent / "shared/data")))
    asked.add_argument("--json", type=Path)
    asked.add_argument("--seed", type=int, default=11)
    given = asked.parse_args()
    if not given.data.is_dir():
        sys.exit(f"no data at {given.data}: name it by --data")
    rows, times = [], []
    for n, (language, origin, text) in enumerate(paragraphs(given.data, given.seed), 1):
        timed(document(text))  # a dictionary may have to be loaded first
        found, ms = timed(document(text))
        times.append(ms)
        rows.append(
            {"language": language, "origin": origin, "text": text, "summary": found.summary, "tags": list(found.tags)}
        )
        write(
            f"\n{n:>2} {language} {origin}\n   {' '.join(text.split())[:400]}\n   = {found.summary}\n   # {' '.join(found.tags)}"
        )
    write(f"\n{len(rows)} paragraphs; enrichment takes {p50(times):.1f} ms p50, {p95(times):.1f} ms p95")
    embedder = Embedder(EmbedSettings(), cache=ROOT / "bench/models")
    embedder.start()
    embedder.wait()
    try:
        vectors: Vectors = lambda texts: embedder.embed_documents(texts, urgent=True).tolist()  # noqa: E731 - one use, with its type
        drifts = {
            name: drift(given.data, vectors, prefer=prefer, seed=given.seed)
            for name, prefer in (("alone", False), ("vocabulary", True))
        }
    finally:
        embedder.close()
    for name, figures in drifts.items():
        write(f"{name:>10}: " + ", ".join(f"{what} {figure}" for what, figure in figures.items()))
    if given.json:
        given.json.write_text(
            json.dumps({"paragraphs": rows, "ms": times, "drift": drifts}, ensure_ascii=False, indent=1)
        )


if __name__ == "__main__":
    main()
