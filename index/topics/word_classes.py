"""List words by class: verbs, adjectives and adverbs, and nouns that name no topic, in each language.

Nothing in these lists is a tag of one word. The lists are lower case and need not be complete: words around a word
show its class too."""

from __future__ import annotations

from typing import Final

from index.text.stopwords import word_set

# Verbs that are rarely nouns, in their basic form, and the past of irregular ones.
ENGLISH_VERBS: Final = word_set("""
accept accomplish accommodate accumulate achieve acknowledge acquire act activate adapt adjust admit adopt advance affect afford agree aim alert align
allocate alter amaze amend amortize analyze analyse announce annoy answer anticipate apologize appear append apply appreciate approach
approve argue arise arrange arrive assemble assert assess assign assist associate assume assure attach attempt attend attract automate avoid await
balance ban bake beat beg begin behave believe belong bend bind bite blame blend bless blow boil borrow bother bounce buy break breathe build burn burst bury
calculate cancel capture care carry catch celebrate challenge charge chase cheat check clarify clean clear climb cling close collapse collect combine
comfort commit communicate compare compensate compete complain complete comply compose compress compute conceal concentrate conclude conduct
confirm conform confuse connect conserve control constitute construct consume contain continue contribute convert convey convince cook cope
copy correspond count crash crawl cry cultivate customise customize cut deal declare decorate decrease dedicate define delay delete
deliver demonstrate deny depart deploy deprecate derive describe deserve destroy detach detect determine develop devote die differ dig diminish disable disagree
disappear discard disclose disconnect discourage discover discuss display distinguish distribute dive divide donate drag draw dream drink drive drop
duplicate earn eat edit elaborate eliminate embed embrace emerge emphasise emphasize employ empower enable encounter encourage endure enforce engage enhance
enjoy enlarge enrich enroll ensure enter entertain equip erase escape establish estimate evaluate evolve examine exceed exchange exclude excuse execute exist
expand expect explain explore export expose express extend extract face facilitate fall fasten favor fear feed fetch fight fill
filter group fit fix flow fly focus fold forbid force forget forgive form format forward foster freeze fulfil fulfill function gather generate grab grant
grasp greet grind guarantee guard guide handle hang hate heal hear hesitate hide highlight hire hit hurt identify ignore illustrate imagine implement imply
import impose impress improve incline incorporate increase incur indicate induce infer influence inform inherit inhibit initiate inject insert insist inspect inspire install instruct
integrate intend interact interfere interpret interrupt introduce invent invest investigate invite invoke involve isolate issue join judge jump justify kick kill kiss knock
laugh launch lay lead lean leap lend let lie lift limit link listen load locate lock log love maintain manage manipulate mark marry match
mention merge mind mitigate mix modify monitor motivate multiply narrow navigate negotiate notice notify obey observe obtain obviate occupy occur omit
open operate oppose optimise optimize organise organize overcome overlap overlook override overwrite overwhelm owe own pack paint park participate paste pause perceive perform permeate permit persist persuade
plan plant play point pop possess postpone pour practise praise pray precede predict preheat prepare prescribe preserve press pretend proceed process produce
prohibit promise promote prompt propose protect prove publish pull punish purchase pursue push quit raise rate reach react realise realize
reassure rebuild recall recognise recognize recommend reconcile record recover reduce refer reflect refresh refuse regard register regret regulate reject relate relax release rely
remind rename render repair repeat reply report represent reproduce request rescue resemble resent reserve reset reside resist resolve
respect respond rest restart restore restrict result resume retain retire retrieve retry return reuse reveal reverse revert review revise reward rewrite rid ride ring rise risk rob roll rotate
rub ruin rush satisfy save scatter schedule scratch scream scroll search secure select separate serve settle shake shape shift shine ship shoot
shorten shout shrink shut sign simplify simulate sing sink skip sleep slide slip smash smell smile smoke solve sound spare spawn speak specify spell spin split spoil spread
spring squeeze stack stare state steal step stick stimulate stir store strengthen stretch strike strip strive struggle study submit subscribe subtract succeed suck suffer suit summarise summarize
supply suppose suppress surround survive suspect suspend sustain swear sweep swim swing tackle tap teach tear tempt tend terminate throw tidy tie tighten toggle touch
trace track trade transfer transform translate transmit travel treat trigger trim trust twist type undergo undertake undo unfold unify unlock unpack update upgrade upload
urge utilise utilize validate vanish vary verify view violate visit visualise visualize wake walk wander warm warn wash waste watch wear weigh welcome widen wipe wish withdraw worry
worsen expire ferment wrap wreck yell yield zoom abstract accompany accuse achieve acquire adhere administer advertise advise advocate aggregate aid alleviate amuse appoint articulate ask assume attain
authenticate authorize authorise beep blur boost broaden browse calm categorize cease cherish circulate cite classify click clone cluster commence compel compile comprehend comprise concern condemn configure confront consent contemplate contend convene
crush curate debate debug decline decode decrypt deem default defend defer delegate delight deliberate demand denote deprive designate desire devise diagnose dictate digest disrupt dissolve
drift eject elevate elicit encode encrypt encompass endorse enlist entail enumerate envision equal equate erect erupt evoke exclaim exert exhibit exploit facet fade flag flip float flourish forecast fork fuel
furnish glance grieve hinder hop howl impact impair import indulge infect inflict insulate intensify invade iterate label lag manifest map masquerade mean
mimic minimise minimize mislead nest neglect nod normalise normalize notify nudge nurture omit opt originate outline paraphrase parse pinpoint plug poll populate portray pose precipitate presume preview prioritize prioritise
probe prosper purge query quote rank reckon recreate recur redirect redo refactor refine reinforce reiterate relieve relocate renew rent reorder replicate resize restructure retrieve scan scrape seize sense showcase shuffle signify snap snooze sort
spark specialise specialize steer stem stress submerge subside substitute swap sync synchronise synchronize tag tailor thrive toss traverse tune undermine unveil uphold usher venture wield wrestle
borne splurge ate beat began begun bent bet bit blew blown bore born bought bound broke broken built burnt caught chose clung crept dealt drank drawn dreamt drew driven drove drunk dug eaten fallen fed fell flew flown
forbidden forgot forgotten forgave fought froze frozen grew grown hid hidden hung heard hurt laid lain lent lit meant mistaken overcame paid proven quit ran rang risen rode ridden rose rung
sang sank sat shaken shone shook shot shrank shut slept slid sold sought spoke spoken spun sprang sprung stole stolen stood struck stuck stung sung sunk swam swept swore sworn swung taught
threw thrown tore torn understood underwent woke woken won wore worn woven withdrew wound wept
am're aren wasn hasn hadn doesn didn isn weren won wouldn couldn shouldn don ain ll ve re
""")
# Of these, the forms without an ending are nouns as often as verbs; context decides.
ENGLISH_EITHER: Final = word_set("""
act advance aim alert answer approach attempt balance ban bake beat bite blend blow break burn burst capture care catch challenge charge chase check climb
comfort conduct control copy count crash cry cut deal decrease default delay demand desire digest display dream drift drink drive drop duplicate edit escape estimate exchange exhibit exploit export express
face fall favor fear feed fight filter fit fix flag flow focus fold force forecast fork form format forward freeze fuel function grant guarantee guard guide handle hate highlight hit hurt impact import increase influence
issue judge jump kick kiss knock label lag laugh launch lead leap lie lift limit link load lock log love map mark match mention merge mind mix monitor
nest notice outline pack paint park paste pause plan plant play plug point poll pop pose practise praise press preview probe process promise prompt purchase push query quote rank rate reach
group record refresh register regret release rent repair reply report request rescue reserve reset respect rest restart result return reverse review reward ride ring rise risk roll rush
scan schedule scratch scream search sense separate shape shift ship shoot sign skip sleep slide slip smell smile smoke snap sort sound spark spell spin split spread spring stack state
stem step stick store stress stretch strike strip struggle study supply swap swing sync tag tap tear toggle touch trace track trade transfer transform travel trigger trust tune twist type
update upgrade upload urge venture view visit walk wash waste watch wear welcome yield zoom abstract aggregate aid boost bounce blur clone cluster concern debate decline delight equal float
flip sink swim wake wound born bit bore bound bet lit rose shot won ran debug build cook balance refactor click deploy drag scroll copy
""")
ENGLISH_ADJECTIVES: Final = word_set("""
absolute abstract active actual acute additional adequate advanced afraid aggressive alive alternative amazing ambiguous ancient angry annual anonymous apparent appropriate arbitrary artificial asleep
automatic average aware awful awkward bare beautiful bitter blank bold boring brief bright brilliant broad brown busy calm central cheap chief chronic clean clear clever close cold comfortable
compact comparable compatible competent complete complex comprehensive concise concrete confident conscious consistent constant contemporary content continuous contrary convenient cool cooperative
costly crazy creative crisp critical crucial crude curious cute daily damp dangerous dark dead deaf dear decent deep deliberate delicate delicious dense dependent desirable detailed different
digital direct dirty disposable distant distinct diverse divine double downstream dry dull durable dynamic eager earlier eastern effective efficient elaborate electric electronic elegant eligible
empty enormous entire equal equivalent essential eternal ethical exact excellent exceptional excess excited exciting exclusive existing exotic expensive experienced explanatory explicit external extra extreme
fair faithful false familiar famous fancy fascinating fast fat favorite favourite fierce firm fit fixed flat flexible fluffy fluid foreign formal fortunate fragile free frequent fresh friendly front frozen full functional
fundamental funny future general generic gentle genuine giant gigantic global golden gradual grand graphical grateful gray grey green gross happy harsh healthy heavy helpful hidden higher highest historical hollow holy honest horizontal horrible hostile hot
huge human humble hungry ideal identical idle ill illegal imaginary immediate immense imminent impressive inadequate incompatible incomplete incorrect incredible independent indirect individual inevitable
inferior infinite inherent initial inner innocent innovative inside insane instant intact integral intelligent intense interactive interested interesting interim internal international intimate intricate intuitive invalid inverse invisible irrelevant isolated joint keen
lazy lean left legal legitimate lengthy lesser lightweight limited linear literal lively local logical lonely longer loose loud lower loyal lucky mad magic magical major mandatory manual married massive mature
maximum meaningful mechanical medium mental mere messy mighty mild military minimal minimum minor missing mobile moderate modern modest monthly moral multi multiple mutual naive naked narrow nasty national native natural neat negative
nervous neutral nearby nested noisy notable noticeable novel numeric numerical numerous obscure obsolete obvious odd offline older oldest online open operational optimal optional oral organic original outer overall painful pale parallel partial
passive patient peculiar perfect permanent persistent personal physical plain pleasant poor popular portable positive potential powerful practical precious precise predictable preferred pregnant premium prepared
pretty primary primitive prior private probable productive professional profound prominent prone proper proud public pure quiet random rapid rare raw realistic reasonable recurring reduced redundant regular related relative relevant
reliable religious reluctant remaining remarkable remote repetitive respective responsible responsive restricted rich right rigid robust romantic rotten rough round royal rude rural rusty sacred safe salty scared secondary
secret secure selfish sensitive separate sequential serious severe shallow sharp shiny shy sick silent silly silver similar sincere skilled sleepy slight slim smart smooth social soft sole solid sophisticated sore sour southern spare spatial
special spectacular stable standard static statistical steady steep sticky stiff straight straightforward strange strict strong structural stubborn stupid stylish subjective subsequent subtle successful sudden sufficient suitable sunny superb superior
sure surprising suspicious sweet swift symbolic sympathetic synthetic systematic tall temporary tender tense terrible thick thin thorough tidy tight tiny tired tough traditional transparent tremendous tricky trivial tropical true typical ugly ultimate
unable unaware unclear uncommon underlying undesirable uneven unexpected unfair unfortunate unhappy uniform unique universal unknown unlikely unlimited unnecessary unpleasant unrelated unusual upcoming upset upstream urban urgent usable useless vague valid valuable
variable vast verbose vertical viable vibrant vicious violent virtual visible visual vital vivid vulnerable warm weak wealthy weekly weird western wet wicked wild willing wise wonderful wooden worldwide worse worst worthwhile worthy wrong yearly yellow young younger
accurate actionable adjacent affordable aforementioned aligned analogous appealing applicable associated atomic attractive audible built-in case-insensitive case-sensitive catchy chemical circular civil classic classical climatic coherent collective colourful colorful commercial complicated conditional
confidential consecutive considerable contextual controversial conventional corresponding cosmic cultural custom customizable dedicated default defensive definite deprecated desired diagonal differing discrete domestic easier easiest economic educational emotional
empirical enabled environmental evergreen everyday evident exhaustive expected explicit faster finite further geographical gifted greater grown-up handy hard-coded heightened high-level historic hourly hybrid implicit inaccurate inactive inclusive inconsistent
industrial insensitive insignificant instantaneous institutional intended intentional involved iterative jealous larger largest legacy literary live longitudinal long-term low-level lossy lossless lovely malicious managerial mathematical maximal medical memorable mixed moral
multi-line multilingual narrative next-generation non-empty nonexistent normal observable occasional official ongoing open-ended orderly outdated outgoing outstanding peaceful philosophical plausible pleasing plural political postal pragmatic present-day presentable prevalent previous
private procedural prompt prospective psychological punctual quick-and-dirty radical readable real-world reciprocal recursive refined reflective regional resilient retail revolutionary rhetorical rightful ripe satisfactory satisfying scalable scarce scenic scientific seamless second-hand second-rate seasonal
self-contained semantic sensible sheer short-lived short-term single-user sizable slippery smaller smallest sociable spiritual spontaneous stand-alone standalone step-by-step stochastic subconscious substantial superficial supplementary supportive surplus sustainable tactical talented technical temporal
tentative textual third-party timeless timely top-level trendy unambiguous unchanged uncertain unconscious uncomfortable understandable unified unintended unspecified untouched up-to-date user-defined user-friendly useful well-known widespread wider
""")
# Of these, the ones that say what somebody thinks of a thing: no term contains them.
ENGLISH_EVALUATIVE: Final = word_set("""
absolute actual acute adequate afraid aggressive alive amazing angry apparent appropriate asleep aware awful awkward beautiful bitter bold boring brief bright brilliant busy calm cheap clever comfortable comparable competent
complete comprehensive concise confident considerable consistent convenient costly crazy critical crucial curious cute dangerous dear decent deliberate delicious desirable detailed different disposable distinct dull eager earlier easier easiest elegant
enormous entire equal equivalent essential exact excellent exceptional excess excited exciting expensive extra extreme fair faithful false familiar famous fancy fascinating fast faster fat favorite favourite fierce fine fluffy fortunate frequent fresh friendly funny
further general gentle genuine giant gigantic gorgeous grand grateful greater gross handy happy harsh healthy heavy helpful higher highest horrible huge humble ideal identical ill immediate immense imminent impressive inadequate incorrect incredible
inevitable inferior innocent insane intact intense interested interesting intimate intricate irrelevant jealous joint keen larger largest lazy lengthy lesser likely little lively lonely longer loose lovely loyal lucky mad magic major married massive mature maximum
meaningful memorable mere messy mighty mild miserable missing modest mutual naive nasty neat necessary nervous nice notable noticeable novel numerous obscure obvious occasional odd older oldest ongoing optimal ordered original outstanding overall painful particular
peculiar perfect personal plausible pleasant pleasing poor popular positive possible potential powerful precious precise preferred pretty prevalent previous primary probable prominent prone proper proud pure quiet ready realistic reasonable recent redundant regardless related
relative relevant reliable reluctant remaining remarkable respective respective rich right ripe rotten rough rude sad satisfactory satisfying scared separate serious severe shallow sheer shiny short shy sick significant silly similar sincere slight slim smaller smallest smart
solid sophisticated sore sour spare special specific spectacular steady strange strict strong stubborn stupid subsequent substantial subtle successful sudden sufficient suitable superb superior sure surprising suspicious sweet tall terrible thorough tidy tight tiny
tired total tough tremendous tricky true typical ugly unable unclear uncommon undesirable unexpected unfair unfortunate unhappy unlikely unnecessary unpleasant unrelated unusual upset urgent useful useless usual vague inside outside online offline upstream downstream valuable various vast vibrant vicious visible vital vivid weak
weird whole wicked wide willing wise wonderful worse worst worthwhile worthy wrong younger accurate adjacent affordable aforementioned analogous appealing applicable attractive complicated corresponding definite desired differing easy evident exhaustive expected
explicit finite heightened implicit inaccurate incomplete inconsistent insignificant intended intentional involved lovely nonexistent normal orderly outdated peaceful poor punctual readable real rightful scarce sensible sizable slippery unambiguous unchanged
uncertain uncomfortable understandable unintended unspecified untouched widespread wider
""")
# Words that are hardly ever a topic but the last word of a compound: unit test.
ENGLISH_ENDS: Final = word_set("note list line test type number")
# Nouns made of a verb.
ENGLISH_GERUNDS: Final = word_set("meeting setting building finding listing testing offering opening meaning training")
# Nouns that name no topic alone; a tag of several words may contain them.
ENGLISH_NAMING: Final = word_set("named titled entitled nicknamed dubbed")  # a name follows
ENGLISH_VAGUE: Final = word_set("""
user developer people eye box reader author owner page default ability action activity addition advantage aim amount answer approach area aspect attempt attention attitude basis beginning behalf benefit bunch capability center chance change character circumstance choice combination comment
comparison concept concern conclusion condition consequence consideration content context copy corner couple criterion deal decade degree detail difference difficulty direction edge effect effort element emphasis entry event evidence exception
existence expectation experience explanation extent extra fact factor failure fashion feature feeling figure form function future goal group guide hand head high hint hole idea impact importance impression improvement increase individual influence
information instance instruction intent intention interest issue item kind lack length letter limit limitation list location look loss low luck majority manner mark mass match means mention method middle mistake moment motion move name
nature need notice notion number object objective occasion opinion opportunity option outcome outside overview pair paragraph participant part party pattern perspective phase phrase piece position possibility practice presence problem process product progress
property proportion purpose quality quantity question range rate reaction reader reality relation relationship relevance requirement respect response responsibility rest restriction result return rise role row rule scenario scope section sense sequence
series shape side sign significance situation size solution source spot stage standard statement step structure stuff style subject success sum technique term title topic track trouble
truth unit update usage use value variety version view volume whole width wording bit call click default guess hope talk try turn worth gap thanks shift front ton anyone none mind lot setting name state point line thing way stack
readability experiment behavior behaviour icon specified preview ease convenience
chapter chapters subsection appendix introduction tutorial documentation readme manual handbook note tip warning remark footnote preface foreword walkthrough checkbox toolbar tooltip dropdown submenu button double-click checkmark placeholder precedence collection region tool mode field likelihood occurrence absence
file command totality entirety half wish wishes
""")
GERMAN_VERBS: Final = word_set("""
klicken ziehen erstellen bearbeiten öffnen speichern laden löschen verschieben drücken wählen auswählen ändern verwenden entfernen hinzufügen kopieren einfügen schließen anklicken doppelklick lesen schreiben halten neustarten anhalten anpassen unterschneiden drucken starten ausführen anzeigen einfügen
suchen überwachen steuern zentrieren abdocken andocken schauen prüfen testen installieren konfigurieren zeichnen füllen ausblenden einblenden umschalten doppelklicken lösen malen beenden fortsetzen zurücksetzen
aktualisieren umbenennen drehen skalieren bestätigen senden empfangen verbinden trennen importieren exportieren anlegen eingeben ausgeben aufrufen erzeugen berechnen sortieren formatieren anwenden abbrechen festlegen
zuweisen laufen einrichten ersetzen vergleichen zusammenführen übernehmen einstellen hervorheben
""")  # verbs that are often written with a capital
GERMAN_VAGUE: Final = word_set("""
allgemeinen folgenden letzteren letzterer ersteren erstere anzahl gegensatz fällen falls falle möglichkeit möglichkeiten eigenschaft eigenschaften beispiele beispiels beispielen übersicht bereich bereiche bereichs reihe reihenfolge gründe gründen teile teilen teils wert werte werten wertes größe höhe länge
breite liste listen art arten form formen lage weise stelle stellen seite seiten zeile zeilen zahl zahlen wunsch einsatz folge folgen rolle regel regeln vorteil vorteile nachteil nachteile unterschied unterschiede umstand umstände bedeutung
richtung schritt schritte schritten aktion aktionen ergebnis ergebnisse ergebnissen zweck zwecke hauptzweck einzelheiten abschnitt kapitel tabelle abbildung vorgang vorgänge verfügung hilfe verwendung nutzung lösung lösungen situation anfang
tages dank bedarf bezug hinsicht rahmen ziel ziele auswirkung auswirkungen option optionen besonderes besonderheit besonderheiten übrigen sinn absicht eindruck eindrücke gefühl gedanke gedanken idee ideen mensch menschen person personen aufgabe
aufgaben maß menge mengen vergleich versuch grundlage gruppe gruppen element elemente elementen objekt objekte titel thema themen text texte wort worte wörter begriff begriffe namen name inhalt inhalte aspekt aspekte erstellung bearbeitung auswahl anleitung
übereinstimmung mittel zustand voraussetzung voraussetzungen wirkung effekt effekte engl standardeinstellung voreinstellung sie ihnen ihre ihrer ihrem ihren einzige meisten weiteres folgendes folgende folgenden folgender
informationen information angabe angaben frage fragen antwort antworten problem probleme problemen arbeit arbeiten service erfahrung erfahrungen existenz bezeichnung bezeichnungen beschreibung reaktion ausführung
zusammenfassung alternative alternativen hintergrund einstellung einstellungen symbol symbole funktion funktionen kontrolle nutzer benutzer anwender leser autor autoren zeit zeiten tag tage jahr jahre jahren stunde
stunden minute minuten moment augenblick gelegenheit verhalten aussehen tätigkeit tätigkeiten ansatz struktur phase phasen vorgehen vorgehensweise verfahren konsequenz konsequenzen erklärung hinweis hinweise anweisung
anweisungen beobachtung kriterium kriterien konzept konzepte feld felder dauer erfolg misserfolg aufmerksamkeit vertrauen wahrscheinlichkeit vielzahl vielfalt bandbreite umfang anforderung anforderungen unterstützung
gegenwart vergangenheit zukunft abkürzung einheit einheiten mitglied mitglieder mitgliedern verantwortliche experte experten qualität schwierigkeit schwierigkeiten komplexität kontext entwicklung fortschritt bemühung
bestandteil bestandteile abbruch nützliches neues gutes weitere kilobytes pixel reihenanzahl vordergrund mitte rand ecke oberseite unterseite linke rechte links rechts oben unten zeitpunkt zeitraum beginn ende schluss
ursache ursachen faktor faktoren ausnahme ausnahmen fehler meinung ansicht interesse interessen bedeutungen beziehung verhältnis zusammenhang verlauf veränderung veränderungen änderung änderungen wechsel entscheidung
entscheidungen vorschlag vorschläge empfehlung gegenstand gegenstände sache sachen ding dinge hand hände kopf auge augen gesicht leben welt land leute anteil betrag summe rest variante varianten stück stücke satz sätze
absatz absätze vorschau kopie kopien klick taste tasten knopf ausdruck stichwort eintrag einträge erwartung erwartungen annahme nutzen aufwand mühe glück hoffnung freude angst anspruch ansprüche unterschieds behauptung
vorstellung vorstellungen fähigkeit fähigkeiten
werkzeug werkzeuge schaltfläche schaltflächen  ausgabe ausgaben eingabe eingaben nummer nummern gleiche gleichen stücken bruchteil darstellung darstellungen
gesamtheit hälfte bedürfnis bedürfnisse wünsche benutzung
""")
SPANISH_VAGUE: Final = word_set("""
embargo plano característica anterior cuarto interés intereses mente momento mínimo máximo método construcción utilización división recuadro caso casos mitad centro parte partes orden
mayoría cantidad vista cuenta lado manera maneras número lista listas posibilidad posibilidades opción opciones valor valores tamaño nivel niveles parámetro efecto efectos diferencia diferencias razón razones ejemplos necesidad
conjunto serie resultado resultados función funciones elemento elementos proceso procesos nombre nombres contenido información idea ideas sentido medida referencia título tema temas vez veces método métodos objeto objetos
propiedad propiedades característica características ventaja desventaja detalle detalles condición condiciones situación solución origen relación cambio cambios grupo grupos línea líneas materia materias control final finales
objetivo objetivos componente componentes diversidad elección forma formas tipo tipos par pares sección capítulo página páginas paso pasos acceso uso usos término términos respuesta respuestas pregunta preguntas acción acciones principio
realidad favor motivo motivos ayuda cuestión cuestiones versión versiones gracias sitio posición cierto mitad total resto fin causa falta gente mundo hecho hechos aspecto aspectos papel región área áreas zona zonas
trabajo trabajos precaución práctica prácticas situaciones funcionamiento espacio espacios entrada entradas descripción carácter caracteres izquierda derecha extremo extremos perspectiva alcance alcances operación
operaciones significado punto puntos manual manuales copia copias acuerdo plataforma consistencia usuario usuarios persona personas problema problemas vida tiempo tiempos hora horas día días año años mes meses siglo
siglos época costumbre hábito hábitos mantenimiento beneficio beneficios importancia capacidad capacidades esfuerzo esfuerzos intento intención comportamiento apariencia actividad actividades tarea tareas ocasión
ocasiones presencia existencia ausencia fase fases etapa etapas estado estados estructura modo modos medio medios manejo comienzo inicio conclusión consecuencia consecuencias comparación explicación indicación
indicaciones instrucciones observación nota notas consejo sugerencia recomendación criterio criterios concepto conceptos campo campos fondo superficie exterior interior altura anchura longitud duración éxito fracaso
atención respeto confianza probabilidad variedad multitud gama rango ámbito ámbitos disposición requisito requisitos soporte apoyo presente pasado futuro abreviación abreviatura acrónimo procedimiento procedimientos
tratamiento actuación aparición adición añadido unidad unidades miembro miembros autor autores lector encargado responsable mano manos ojo ojos cara pulsación resaltado tecla teclas acompañamiento alternativa alternativas
mejora mejoras éxitos vías vía camino lugares problemática diferenciación evolución desarrollo crecimiento aumento disminución reducción llegada salida salidas país países sociedad historia hombre hombres mujer mujeres
nacimiento muerte conocimiento experiencia experiencias opinión opiniones creencia sentimiento deseo voluntad esperanza miedo riesgo peligro fuerza poder realización ejecución aplicabilidad utilidad calidad cualidad
cualidades dificultad dificultades facilidad sencillez complejidad simplicidad contexto marco marcos figura figuras colección expresión palabra palabras frase frases inconveniente inconvenientes circunstancia
circunstancias hipótesis apartado párrafo tabla tablas ilustración esquina esquinas pie cabeza superior inferior contrario consecuente preferencia preferencias cargo
vocabulario compromiso cresta ola contacto contactos soluciones arte mecanismo mecanismos estrategia estrategias requerimiento requerimientos ventajas hito hitos metáfora medidas intervención
personal compendio
botón botones ratón icono iconos símbolo símbolos casilla casillas negro blanco rojo verde azul cura ejemplar ejemplares encabezado mayúscula mayúsculas minúscula minúsculas expresiones decimales
apéndice guía guías documentación advertencia advertencias introducción prefacio anexo cuadro cuadros clic clics pestaña pestañas submenú excepción excepciones letra letras regularidad frecuencia rapidez cuidado responsables
totalidad necesidades deseos
""")
FRENCH_VAGUE: Final = word_set("""
compte instar abord deuxième troisième second anciens ancien ancienne développement provenance potentiels mises manuels manuel commande commandes guise clic maximum concrètement trace coin coins exemple autrui ci sorte
touche touches début objet objets boîte chacun chacune peut-être parti charge cours rapport rapports naissance jaune rouge vert bleu noir blanc outil outils service services utilisateur utilisateurs programme programmes
fait mot mots
jeu autres anglais français ordre mode modes pratique dessous dessus certitude chances celui-ci celle-ci ceux-ci celles-ci celui-là celle-là biais guise masse préalable précaution droit peu intérêt moment temps
cas lieu exemple exemples sein effet effets doute ailleurs défaut général nombre liste listes option options valeur valeurs taille niveau niveaux paramètre différence différences raison raisons besoin besoins ensemble série résultat
résultats fonction fonctions élément éléments processus nom noms contenu information informations idée idées sens mesure référence titre thème sujet façon façons manière manières méthode méthodes objet objets propriété propriétés
caractéristique caractéristiques avantage inconvénient détail détails condition conditions situation solution origine relation changement changements groupe groupes ligne lignes fin début but objectif type types sorte paire section chapitre
page pages étape étapes accès utilisation usage terme termes réponse réponses question questions action actions principe réalité aide version versions position moitié reste cause manque gens monde suite aspect aspects rôle zone zones
tableau création remarque conseil contraire travers possibilité possibilités quantité choix état état coup côté tour fait mise moyens moyen majorité plupart instant moment moments endroit endroits forme formes peine partir
travail travaux habitude habitudes tâche tâches espace espaces intérieur extérieur gauche droite haut bas centre milieu extrémité extrémités séquence événement événements force longueur largeur hauteur problème problèmes
figure figures rubrique vie ans an année années jour jours heure heures mois siècle siècles époque fonctionnement limitation limitations spécificité spécificités suffixe phase phases historique importance domaine domaines
influence personne personnes membre membres auteur auteurs lecteur lecteurs présence absence existence apparence comportement opération opérations activité activités étude études traitement démarche approche logique
procédure procédures conséquence conséquences explication explications indication indications instruction instructions observation critère critères concept concepts secteur champ champs fond surface durée succès échec
essai attention respect confiance probabilité variété multitude gamme plage ampleur disposition exigence exigences soutien présent passé avenir abréviation acronyme unité unités responsable expert copie copies description
descriptions dimension dimensions utilitaire utilitaires évolution progrès effort efforts volonté souhait difficulté difficultés facilité simplicité complexité qualité qualités occasion occasions circonstance
circonstances contexte cadre portée faits partie parties collection collections concert fonctionnalité fonctionnalités marche date dates utilisations emploi emplois bout bord bords tête main mains œil yeux corps visage
pays société histoire homme hommes femme femmes mort connaissance connaissances expérience expériences opinion opinions avis sentiment désir espoir peur risque risques danger pouvoir réalisation exécution utilité
hypothèse hypothèses paragraphe illustration phrase phrases expression expressions symbole symboles signification signifie mention mentions croissance augmentation diminution réduction arrivée sortie sorties entrée
entrées alternative alternatives comparaison conclusion introduction amélioration améliorations modification modifications passe lettre lettres aise instance instances poids titres conséquent inverse couple couples pair
pairs proprement centaine dizaine douzaine millier milliers million millions pourcentage
contact contacts solutions compagnon compagnons art arts chemin chemins appel appels adoption préparation perspective perspectives choses chose mécanisme mécanismes ressource ressources stratégie stratégies politique
politiques système
bouton boutons souris icône icônes case cases prise attente marque argument arguments chiffre chiffres combinaison combinaisons indice indices numéro numéros appui
annexe annexes guide guides documentation astuce astuces avertissement avertissements préface onglet onglets clics genre genres fréquence précautions exception exceptions quinzaine trentaine groupement groupements
totalité intégralité désirs situations volée
""")
ITALIAN_VAGUE: Final = word_set("""
numero lista elenco opzione opzioni valore valori dimensione livello differenza ragione esempio esempi bisogno insieme serie risultato risultati funzione funzioni elemento elementi processo nome nomi contenuto informazione
informazioni idea idee senso misura titolo tema maniera modi metodo oggetto proprietà caratteristica caratteristiche vantaggio dettaglio dettagli condizione condizioni situazione soluzione origine relazione cambiamento gruppo
linea fine inizio scopo tipo tipi sezione capitolo pagina passo accesso uso termine termini risposta domanda azione principio aiuto versione posizione resto causa mancanza gente mondo fatto aspetto ruolo zona possibilità quantità scelta
""")
PORTUGUESE_VAGUE: Final = word_set("""
número lista opção opções valor valores tamanho nível diferença razão exemplo exemplos necessidade conjunto série resultado resultados função funções elemento elementos processo nome nomes conteúdo informação informações ideia
ideias sentido medida título tema maneira modo método objeto propriedade característica vantagem detalhe detalhes condição condições situação solução origem relação mudança grupo linha fim início objetivo tipo tipos seção capítulo
página passo acesso uso termo termos resposta pergunta ação princípio ajuda versão posição resto causa falta gente mundo fato aspecto papel zona possibilidade quantidade escolha maioria
""")
VAGUE: Final = {
    "en": ENGLISH_VAGUE,
    "de": GERMAN_VAGUE,
    "es": SPANISH_VAGUE,
    "fr": FRENCH_VAGUE,
    "it": ITALIAN_VAGUE,
    "pt": PORTUGUESE_VAGUE,
}
# Chinese verbs and adjectives that the dictionary calls nouns.
CHINESE_VERBAL: Final = word_set("""
所谓 相匹配 体验 尝试 启动 设置 自动 利用 学会 调整 想象 经历 关联 消耗 思考 命名 有关 代表 分配 优先 合理 合作 交流 反应 有点 统一 明白 假设 关心 定期 普通 理解 驱动 空腹 自带 解决问题 约束 入门 消失 掌控 手动 全面 编辑 检索
过度 前者 后者 加工 区别 动态 培训 反馈 预测 被动 制作 运用 举例 检查 公平 总会 试试 生效 辅助 区分 指向 突破 替代 判断 极端 导向 最好 指导 回家 太多 局部 浪费 流动 立马 运作 积累 走神 传播 说法 两者 原本 投入 形容 预期
卓越 消化 某件事 描述 调用 基本上 规定 感兴趣 巨大 花费 根本 清空 人家 两人 波动 改变 推移 发布 粘贴 操作 见面 归类 收费 漫长 毕业 新建 调试 储存 升级 短时间 聊天 控制 提高效率 几秒钟 预先 人人 决定 宝贵 花钱 声明 危害
优质 分摊 段时间 写文章 抵抗 三大 同理 为例 建立联系 进阶 回答 动手 局限 融合 胜利 客观 主观 安静 浪费时间 最大化 感受 美丽 采取行动 计算 耗时 失败 对比 直观 混合 重置 热门 陌生 小心 过分 探究 对面 设想 细化 长大 流向
表现 快乐 生动 延时 活跃 灌输 完整 全都 屏蔽 补充 观察 准备 调控 改动 表述 审查 汇总 执行 下单 讲究 连贯 主打 变形 输出 输入 实属 帮助 层层 证实 发明 谈判 讨论 明智 类似 概括 套用 人能 远高于 细分 相关 提问 联动 嵌套
宣传 限制 言语 动用 人均 误会 高效 人来 希望 生气 有力 发育 盲目 麻木 平均 监督 被称作 误导 伟大 疯狂 投向 意图 遭遇 刺激 低头 认可 增强 加载 关机 写字 探索 挖坑 费力 联网 恢复 玩玩 获取 神圣 归纳 关注 交融 预估 体贴
无辜 练习 论证 陪伴 调动 谈论 运转 问问 向前走 压制 遗漏 记下 散步 简洁 流逝 样样 新鲜 太大 局限于 人为 密集 试图用 拉大 生存 延续 使人 之情 教给 陈列 赞美 期望 伤心 客气 气愤 生病 崛起 紧张 效仿 遗憾 打了个 舒适 严格执行
骄傲 下文 见下文 迟早会 发炎 有效 丰富 强大 运行 辩论 访问 兴起 分解 特殊 美化 普及 别提 流传 调配 精简 太小 离谱 常见 所思 又名 情绪低落 都行 改造 误解 刻板 贴标签 傲慢 有序 考验 串联 减损 太久 杜绝 仔细阅读 花太多
请求 能干 虚构 先行 等价 连线 变动 同情 大大降低 应有 之义 精心 介绍 倾向 出售 营造 交代 骗人 方方面面 许可 引用 领悟 最高 合格 泛指 扎根 无语 陈述 所处 上学 重温 华丽 塑造 转化 养活 单行 会花 更糟 行文 维护 时会 书写
高超 抽象 提示 增长 力图 成正比 极力 一人 怪异 渴望 向太空 宁静 融化 异化 尊重 战胜 重视 睁开 交织 惊喜 凭空 检验 结合 启发 心存 革新 用心 对付 有形 时髦 兴奋 保护 精彩 敏锐地 老实 救人 吹牛 恭维 增加 冲刺 提升 提高 徒手
发挥作用 投产 集聚 借债 反思 扩张 避免 死机 重试 显示 至极 胜任 时能 倔强 切身 作梗 测量 加码 拉满 主持会议 长痘 详尽 一字 集中精力 优秀 统称 程序运行 节省时间 合法 跳转 指定 试用 配合 负责管理 重新排列 侵入 费心 谈谈
衷心 扩大 不断扩大 离间 博人 所欲 写文 排练 综合 做客 熟络 所指 对应 显性 隐性 平息 重生 深思 考究 回忆 协商 抗衡 迷人 商量 低调 内化 干坏事 调研 包罗万象 安于享乐 尽力 所在 之间 与否 过来 起来 整理 记录 总结 分析 存在 需要 喜欢 觉得 认为
紧密联系 充满希望 同步进行 上市 罗列 动员 建设 协同 感知 闭合 翻盘 击杀 存储 挂着 强有力 坚定 刺耳 火热 零散 专属 一体 可怕 拥挤 轻松 勤奋 流入 流出 整合 铸成 掌握 记住 提取 倾听
所学 双向 单向 派上用场 保持良好 后练 先练 打电话 全力以赴 一线
有所 保持 足够 调节 应付 个别 定义 缺省 默认 导出 导入 投递 致力于 致力 点击 单击 双击 拖动 勾选 选中 添加 删除 打开 关闭 退出
""")
EAST_ASIAN_VAGUE: Final = word_set("""
当初 従来 条件 物事 役割 機能 活動 計画 意見 機関 組織 問題 技法 思想 年齢 影響 地域 各地 世界 国家 政府 事件 観点 立場 考え 傾向 要素 概念 種類 規模 表記 選択 時点 決定 実行 責任 任務 項目 不可欠 最大 合計 多数 項 上記 下記 様式 詳細 総称 自己 同士 側面 反発
順次 メートル キロメートル センチメートル マイクロメートル サービス 期間 設立 開始 不可能 指導 加盟 採用 提唱 支配 建国 成功 復帰 要求 評価 指摘 批判 反対 支持 議論 研究 調査 報告 意向 予測 期待 主流 正確
距离 联系 次数 肩膀 先生 脑子里 那时 关键 意味 影响 生活 作品 建议 办法 项目 市场 身份 战略 产品 团队 传统 习惯 价值 现象 标准 效果 能力 机会 经验 知识 信息 理论 概念 规则 原则 结构 系统 功能 阶段 领域 层面 因素 条件 目标 任务 环境 社会 世界 国家 时代 历史 朋友 孩子 父母 家庭 行为 活动 工作 选择 需求 要求 变化 发展 全力 努力 东西 感觉 想法
跨度 大量 大部分 段落 属性 主旨 通俗 类型 类别 版本 格式 名称 名字 单位 数量 大小 长度 位置 文字 语言 话题 主题 观点 态度 记录 总结 分析 文件 内容 标记 整理 影响 贡献 重大贡献 那时候 一年 很多人 朋友们 人会 指人 一件 小事 事儿 事项 对方 整体 太大 背景 形式 基础 细节 事物 优势 核心 资源 场景 本质 范围 比例 顺序 时刻 特性 有点 案例 角色 前提 代价 部位 举例 表面 典型 疑问 缺点 优点 重要性 要点 理由 程度 过程 所有人 普通人 年轻人 大众 双方 人群 成员 读者 涵义 小孩子 大人 老师 同学 男人 女人 女孩子 眼光 眼睛 某件事 时期 日子 时光 步骤 结论 答案 途径 措施 手段 机会 印象 道理 地位 场合 意见 看法 说法 想法 状况 现状 状态 局面 局势 世纪 年龄 数字 两人 原因 结果 情况 方式 方法 东西 地方 时候 事情
人员 概率 原理 现实 规模 视角 层级 力度 起源 来历 对立面 大局 全局 部件 大概 种类 道路 方向 侧面 正面 负面 反面 角落 空间 时间段 时段 期间 初期 后期 早期 中期 末期 年代 当下 如今 未来 过去 现代 当代 古代 今日 明日 昨日 周末 月份 季节 早晨 夜晚 中午 深夜 凌晨 个体 主体 客体 对象 目的地 动机 动力 兴趣 爱好 热情 信心 勇气 耐心 能量 精力 体力 力气 心思 心里 内心 脑海 心中
眼中 手中 口中 身上 重点 元素 组成部分 环节 层次 维度 尺度 幅度 高度 深度 广度 宽度 厚度 强度 密度 速度 频率 比率 数值 数目 总数 平均值 最大值 最小值 上限 下限 极限 界限 边界 边缘 中央 四周 周围 附近 外部 内部 前方 后方 上方 下方 顶部 底部 左侧 右侧 两侧 旁边 解释 叙述 故事 话语 语句 句子 词汇 词语 名词 答复 回应 疑惑 困惑 难题 困难 麻烦 障碍 挑战 机遇 运气 命运 结局
后果 成果 成就 成绩 收获 损失 利益 好处 坏处 益处 弊端 毛病 错误 失误 缺陷 不足 短板 长处 特征 特色 特质 品质 质量 水平 水准 等级 级别 档次 次序 规律 法则 准则 框架 轮廓 外观 外表 外形 形状 样式 款式 风格 气氛 氛围 气质 风貌 面貌 处境 境地 情景 情境 情形 场面 画面 景象 感情 情感 颗粒 优势方 劣势方 意愿 必要性 可能性 可行性 完整性 破坏性 使命 愿景 意识 本能 天赋 本领
技巧 诀窍 秘密 奥秘 真相 事实 实际 案件 行业 业务 事业 岗位 职位 职业 头衔 称号 同伴 伙伴 队友 对手 敌人 陌生人 路人 旁人 观众 听众 用途 用处 权利 义务 责任感 立场 倾向 趋势 潮流 走势 走向 步伐 脚步 节奏 进度 进展 安排 打算 目光 视线 视野 声音 语气 口气 表情 神情 动作 姿势 姿态 メンバー 影響範囲 研究チーム ラインナップ 一部 参加者 関係者 使用者 利用者 対象 規定 方針 状態
状況 形態 手法 目的 結果 効果 意義 価値 特徴 性質 多様性 独自性 可燃性 範囲 部分 全員 人々 人物 個人 集団 団体 時代 時期 場合 場所 情報 資料 記録 記述 説明 紹介 表現 言葉 名前 呼称 用語 単位 数値 割合 基準 水準 段階 過程 経緯 関係 関連 違い 変化 発展 増加 減少 拡大 縮小 維持 継続 終了 完成 発表 公表 発見 報道 主張 提案 要請 準備 対応 対策 明確 容易 困難 主要 生産費用
無限大 ページ ケース グループ タイプ レベル プロジェクト イメージ スタイル パターン トップ ポイント テーマ タイトル シリーズ ハンディ
内层 表层 理念 同事 思路 概况 同行 上级 下级 前辈 后辈 新人 局限性 长期 短期 中间 源头 尽头 开头 结尾 末尾 首位 末位 余地 空白 间隙 缝隙 瞬间 片刻 本人 某人 局部 全貌 大纲 纲要 摘要 常识 道具 外界 世间 人间 社会上 国内 国外 海外 当地 本地 外地 地点 地带 场所 现场 会场 一代 后代 前人 名人
考察 廃止 敏感 半程度 次第 報告書 設置 制定 実施 運営 管理 利用 活用 使用 導入 普及 形成 構成 成立 存在 独立 参加 出場 出席 発生 発達 展開 推進 促進 強化 改善 改正 解決 解消 解釈 理解 認識 判断 判定 検討 検証 分類 比較 前者 後者 前半 後半 以上 以下 最初 最後  近年 当該 全域 流程 标题 事例 生性
章节 本章 本节 小节 手册 本手册 指南 教程 附录 页面 前言 序言 注释 脚注 选项 选项卡 按钮 图标 菜单 列表 对话框 面板 工具栏 复选框 下拉框 光标 工具 技术 范例 身心 移动
""")

# Adjectives that stand before their noun, and others that no tag of one word should be.
ROMANCE_ADJECTIVES: Final = word_set("""
cuyo cuya cuyos cuyas ciertos ciertas general generales correspondiente correspondientes dicho dicha dichos dichas ambos ambas demás nombreux nombreuses divers
primeras primeros premiers premières primi prime primeiras primeiros llamado llamada llamados llamadas pequeño pequeña pequeños pequeñas gran grande grandes buen bueno buena buenos buenas nuevo nueva nuevos nuevas viejo vieja bello bella primer primera segundo segunda tercer tercera último última últimos últimas mismo misma mismos mismas mejor mejores peor
mayor mayores menor menores simple simples principal principales verdadero verdadera siguiente siguientes anterior anteriores propio propia único única varios varias diferente diferentes diversos diversas distinto distinta distintos distintas actual
actuales posible posibles necesario necesaria importante importantes largo larga corto corta alto alta bajo baja malo mala mal doble presente final finales tal tales
petit petite petits petites grand grande grands grandes nouveau nouvelle nouveaux nouvelles nouvel bon bonne bons bonnes beau belle vieux vieille jeune joli gros grosse long longue mauvais mauvaise haut haute premier première derniers dernier dernière dernières autre autres
même vrai vraie seul seule certain certaine certains certaines différent différents différente différentes divers diverses meilleur meilleure meilleurs principal principale principaux simple simples important importante importants importantes suivant suivante suivants suivantes
précédent précédente actuel actuelle possible possibles nécessaire nécessaires présent présente tel telle tels telles même mêmes plusieurs quelques propre propres double
piccolo piccola grande nuovo nuova nuovi nuove vecchio buono buona bello bella primo prima ultimo ultima stesso stessa migliore peggiore vero vera seguente precedente proprio unico diverso diversi diverse pequeno pequena novo nova novos novas velho bom boa
primeiro primeira último mesmo mesma melhor pior verdadeiro seguinte próprio próprio único diferente diferentes
quatrième cinquième sixième cuarto cuarta quinto quinta suivi suivis suivies fine fines rare rares multiple multiples múltiple múltiples numerosos numerosas amplio amplia amplios amplias
correcto correcta correctos correctas común comunes antiguo antigua antiguos antiguas moderno moderna modernos modernas raro rara raros raras completo completa completos completas exacto exacta meilleures correct correcte corrects correctes ancien ancienne anciens anciennes récent récente récents récentes prochain prochaine
faible faibles fort forte forts fortes moindre moindres énorme énormes immense immenses court courte courts courtes rapide rapides lent lente lents lentes léger légère légers légères bref brève brefs brèves breve breves rápido rápida rápidos rápidas lento lenta lentos lentas fácil fáciles difícil difíciles fuerte fuertes débil débiles enorme enormes inmenso inmensa inmensos inmensas ligero ligera ligeros ligeras
conocido conocida conocidos conocidas citado citada citados citadas mencionado mencionada mencionados mencionadas famoso famosa famosos famosas célebre célebres connu connue connus connues fameux fameuse fameuses célèbre célèbres cité citée cités citées mentionné mentionnée mentionnés mentionnées
""")

# Function words, by what the words around them are.
ENGLISH_ARTICLES: Final = word_set("""
the a an my your his her its our their this these those each every any some no another which whose
""")  # a noun follows
ENGLISH_PREPOSITIONS: Final = word_set("""
of in for with from by about without between into per via
""")  # a noun or a gerund follows
ENGLISH_GERUND_OPENERS: Final = word_set("""
when while by before after without for if through despite instead upon start starts stop avoid keep keeps
""")  # a gerund with an object follows
ENGLISH_OBJECTS: Final = word_set("""
the a an my your his her its our their this these those them him us me it each every any some all both yourself itself themselves
""")  # a verb or a preposition stands before
ENGLISH_SINGULARS: Final = word_set("this that a an each every")  # a noun without the ending s follows
ENGLISH_QUESTIONS: Final = word_set("how whether what why")  # a verb stands before: controls how
ENGLISH_SUBJECTS: Final = word_set("""
i you we they he she who can can't cannot will won't would should must may might could don't doesn't didn't please let's lets
""")  # a verb follows
ENGLISH_LINKS: Final = word_set("""
it that which not never always also then to and or often sometimes usually otherwise still just only
""")  # a word that may be a verb is one after these
ENGLISH_COPULAS: Final = word_set("""
is are was were be been being isn't aren't wasn't very too so more most less quite rather as how seem seems feel feels become becomes
""")  # an adjective follows
ROMANCE_ARTICLES: Final = {  # a noun follows, perhaps after an adjective
    "es": word_set("""
el la los las un una unos unas del al su sus mi mis tu tus nuestro nuestra nuestros nuestras este esta estos estas ese esa esos esas aquel aquella
cada otro otra otros otras cualquier ningún ninguna algún alguna algunos algunas varios varias muchos muchas todo toda dos tres cuatro
"""),
    "fr": word_set("""
le la les l' un une du des au aux ce cet cette ces chaque son sa ses mon ma mes ton ta tes votre notre nos vos leur leurs quel quelle quels quelles
plusieurs quelques certains certaines tout toute deux trois quatre
"""),
    "it": word_set("""
il lo la i gli le l' un uno una un' del dello della dei degli delle dell' al allo alla ai agli alle all' dal dalla dai dalle dall' nel nello nella nei
nelle nell' sul sulla sui sulle sull' col suo sua suoi sue mio mia tuo tua nostro nostra questo questa questi queste ogni due tre
"""),
    "pt": word_set("""
o a os as um uma uns umas do da dos das no na nos nas ao aos à às pelo pela seu sua seus suas meu minha este esta esse essa cada outro outra dois três
"""),
}
ROMANCE_PREPOSITIONS: Final = {  # a noun or an infinitive follows
    "es": word_set("""
de con sin por para sobre entre desde hasta según mediante durante en
"""),
    "fr": word_set("""
de d' dans sur avec sans pour par sous vers chez contre selon en
"""),
    "it": word_set("""
di d' con senza per su fra tra da in
"""),
    "pt": word_set("""
de com sem por para sobre entre desde até em
"""),
}
ROMANCE_COPULAS: Final = word_set("""
es son era eran fue fueron sea sean ser está están estar est sont était étaient soit soient être serait è sono é são
""")  # an adjective follows
ADVERBIAL_PREPOSITIONS: Final = word_set("a con en por par avec")  # after these, a noun without an article is an adverb
ROMANCE_CONJUNCTIONS: Final = word_set("y e o u et ou ni a à")  # anything may follow
ROMANCE_PRONOUNS: Final = word_set(
    "la los las le les l' lo gli o os as"
)  # articles that are also objects of a verb after them
INFINITIVE_OPENERS: Final = word_set("pour de d' à sans")  # after these and a pronoun, an infinitive follows
BEFORE_PRONOUNS: Final = word_set(
    "que qui se ne no non não autres on je tu nous vous il elle ils elles che si ya"
)  # after these, they are objects
ROMANCE_PLURALS: Final = word_set("""
les des ces mes tes ses nos vos leurs aux plusieurs quelques los las unos unas estos estas esos esas sus mis tus algunos algunas muchos muchas
""")  # articles after which a word without a plural ending is a verb
ROMANCE_ADVERBIAL: Final = word_set(
    "ailleurs outre intermédiaire defecto conséquent inverse concert plupart supuesto acuerdo pesar proprement través menudo conséquence"
)  # after a preposition, they make an adverb
ROMANCE_MANNERS: Final = word_set(
    "façon manière mode genre manera forma modo maniera maneira"
)  # after "de", they begin an adverb
