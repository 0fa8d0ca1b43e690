"""List the stopwords of each language: function words, and words that are frequent in most notes.

No tag is a stopword, and none begins or ends with one. The lists are lower case; accents are as written."""

from __future__ import annotations

from typing import Final


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, separated by whitespace."""
    return frozenset(text.split())


ENGLISH: Final = word_set("""
seven eight nine eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy
eighty ninety dozen
a about above across actual actually after again against ago all almost alone along already also although always am among
amongst an and another any anybody anyone anything anyway anywhere apart are aren't around as aside ask at away back bad badly
be became because become becomes been before behind being below beside besides best better between beyond big bit both but by
came can can't cannot case cause certain certainly clearly come comes coming consider could couldn't course currently day days
definitely despite did didn't different do does doesn't doing don't done down due during each early easily easy either else
enough entire especially etc even eventually ever every everybody everyone everything everywhere exactly example except fact
far few finally find first five for former four from full fully further gave generally get gets getting give given gives giving
go goes going gone gonna good got great guess had hadn't half happen happened happens hard hardly has hasn't have haven't having
he he'd he'll he's hello help helps hence her here here's hers herself hey hi high him himself his hope how how's however hundred
i i'd i'll i'm i've idea if in indeed instead into is isn't it it'd it'll it's its itself just keep keeps kept kind knew know known
knows large last late later latter least leave left less let let's lets like likely little live ll long look looked looking looks
lot lots low made mainly make makes making many matter may maybe me mean means meant mere merely might mine minute minutes more
moreover most mostly mr mrs ms much must my myself namely near nearly necessary need needed needs neither never nevertheless new
next nice no nobody none nor normal normally not note noted nothing now nowhere number obviously of off often oh ok okay old on
once one one's ones only onto open or order ordinary other others otherwise ought our ours ourselves out outside over own part particular
particularly past people per perhaps place point possible possibly pretty probably provides put quite rather re really reason
recent recently regarding remember right said same saw say saying says second see seeing seem seemed seems seen sense sent set
several shall she she'd she'll she's should shouldn't show showed shown shows side since six small so some somebody somehow someone
something sometime sometimes somewhat somewhere soon sort start started starts still stop such sure take taken takes taking talk
talked tell ten tend than thank thanks that that'll that's the their theirs them themselves then there there's therefore these
they they'd they'll they're they've thing things think thinking third this those though thought thoughts thousand three through
throughout thus time times to today together told tomorrow tonight too took toward towards tried tries true truly try trying turn
turned two type under unless unlike until unto up upon us use used useful uses using usual usually various very via want wanted
wants was wasn't way ways we we'd we'll we're we've week weeks well went were weren't what what's whatever when whenever where
where's wherever whether which while who who's whoever whole whom whose why wide will wish with within without won't wonder word
words work worked working works world worth would wouldn't year years yeah yes yesterday yet you you'd you'll you're you've your
yours yourself yourselves zero monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays utc gmt cest pst pdt mon tue wed thu fri sat sun january
february march april june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
morning afternoon evening night todo tbd fixme http https www com org html amp nbsp lorem ipsum approx min max e.g i.e eg ie vs
quick quickly slow slowly simple simply happy sad lovely fun amazing awesome cool wow glad totally hour hours month months
able add added adds allow allows bring brings brought call called calls change changed changes check choose chosen create
created creates decide decided decides depends end ended ends fail failed fails feel feels felt follow following follows found
gain grow grows hold holds include included includes including learn learned leave leaves list listed lose loses lost main
meet met miss missed move moved moves multiple offer offered pass passes pay pays pick picked please plus possible prefer
prefers present previous prevent prevents read ready real receive received remain remains remove removed removes replace
replaced require required requires run running runs seek sell send sends sit spend spent stand stay stays suggest suggested
support supports switch switched tends test tested tests top total understand update updated upper wait waited waits watch
win wins wrote write writes written specific available common similar single current basic final important correct
careful according amount anymore bottom gonna wanna lack level line lines none off whatever yourself share shared
depending concerning
""")
# Of these, the ones that occur in compounds: start date, line break, daily note.
COMPOUNDING: Final = word_set("""
start end test line list type place point time call support share word words switch order change day week month year work note number due
""")
GERMAN: Final = word_set("""
wir freien gelesen fünf sechs sieben acht neun zehn zwanzig hundert tausend dutzend paar hinweis notiz entscheidung
ab aber alle allein allem allen aller allerdings alles als also am an andere anderem anderen anderer anderes anders anfang auch auf
aus außer außerdem bald beide beiden beim beispiel bei bereits besonders besser bis bisher bitte bleibt braucht brauchen da dabei
dadurch dafür dagegen daher dahin damals damit danach daneben dank dann daran darauf daraus darf darin darüber darum darunter das
dass davon davor dazu dein deine dem den denen denn dennoch der deren des deshalb dessen die dies diese diesem diesen dieser dieses
doch dort drei du durch dürfen ebenfalls ebenso eben ein eine einem einen einer eines einfach einige einigen einmal ende entweder
er erst erste ersten es etwa etwas euch euer eure fall fast finden findet für ganz ganze ganzen gar geben gegen gehen geht genau
genug gerade gern gibt ging groß große großen größer gut gute guten hab habe haben halt hat hatte hatten hätte heißt her heute hier
hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in indem ins insbesondere irgendwie ist ja jahr jahre jahren je
jede jedem jeden jeder jedes jedoch jetzt kam kann kannst kaum kein keine keinem keinen keiner klein kleine kleinen kommen kommt
könne können konnte konnten könnte lange lang langsam lassen lässt letzte letzten leicht liegt macht machen man manche manchmal mehr mein
meine meinem meinen meiner meist meisten mich mir mit möchte möglich morgen muss müssen musste nach nachdem nämlich natürlich neben
nehmen neu neue neuen neuer neues nicht nichts nie niemand nimmt noch nun nur ob oben oder oft ohne recht rund schlecht schnell
schon sehr sei seid sein seine seinem seinen seiner seit seite selbst sich sicher sie siehe sind so sobald sofern sofort sogar
solange solche sollen soll sollte sollten sondern sonst soweit sowie sowohl später spät statt steht stehen stets tag tage tagen
teil tun über überhaupt übrigens um und uns unser unsere unten unter viel viele vielen vielleicht vier vom von vor vorher wann war
waren warum was weder weg wegen weil weiter weitere weiteren welche welchem welchen welcher wenig wenige weniger wenn wer werden
wie wieder wird wirklich wo wobei woche wochen wodurch wohl wollen will wurde wurden würde würden zeit zu zudem zuerst zum zur
zurück zusammen zwar zwei zwischen zwölf montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april mai
juni juli august september oktober november dezember z.b d.h bzw usw ca uhr euro prozent stück sache dinge ding leute mal male
frage problem grund weise art punkt grad monat monate monaten stunde stunden minute minuten
""")
SPANISH: Final = word_set("""
cinco nueve ocho diez once doce quince veinte treinta cuarenta cincuenta cien ciento mil docena par nota notas personas
a acá además ahí ahora al algo algún alguna algunas alguno algunos allá allí ambos ante antes aquel aquella aquellas aquello aquí
así aún aunque bajo bastante bien buen buena bueno cada casi caso cierta cierto como cómo con conmigo contra cosa cosas cual cuál
cuales cualquier cualquiera cuando cuándo cuanto cuánto cuatro da dado dan dar de debe deben debería decir del demás demasiado
dentro desde después detrás día días dice dicen dicho diferente diferentes donde dónde dos durante e ejemplo el él ella ellas ello
ellos en encima entonces entre era eran eres es esa esas ese eso esos esta ésta está están estaba estaban estado estamos estar este
éste esto estos estoy etc fue fueron gran grande grandes ha había habían haber hace hacen hacer hacia hacía han hasta hay hecho hizo
hoy igual incluso ir jamás junto la las le les lo los luego lugar más mal mañana manera mas mayor me media medio mejor menos mes meses
mí mi mientras mío mis misma mismas mismo mismos modo momento mucha muchas mucho muchos muy nada nadie ni ningún ninguna ninguno no
nos nosotros nuestra nuestras nuestro nuestros nueva nuevas nuevo nuevos nunca o os otra otras otro otros para parece parte pero
peor poca pocas poco pocos podemos poder podría podrían poner por porque pronto propia propio pueda puede pueden puedo pues punto que
qué quien quién quienes quiere quizá quizás se sea sean según segunda segundo seis ser será serán sería si sí sido siempre siendo
siete sin sino sobre sola solo sólo solamente son soy su sus suya suyo tal tales también tampoco tan tanta tanto te tenemos tener
tenga tengo tenía ti tiempo tiene tienen toda todas todavía todo todos tras través tres tu tú tus último última últimos un una unas
uno unos usa usar uso usted ustedes va vamos van varias varios veces ver vez vida visto volver vosotros voy y ya yo lunes martes
miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
año años semana semanas hora horas minuto minutos cerca lejos debajo arriba abajo aproximadamente alrededor mediante respecto
problema tipo forma grado grados primer primera primero tarde noche conviene hacerlo queda quedan sirve llega lleva llevan deja dejar
bajan baja suben sube pasa pasar cambia cambiar mantiene
aquellos excepto salvo incluso éste ésta éstos éstas ése ésa ésos ésas aquél aquélla aquéllos aquéllas continuación defecto menudo adelante delante antemano
""")
FRENCH: Final = word_set("""
a à afin ai ainsi alors après assez au aucun aucune aujourd'hui auquel aura aussi autant autour autre autres aux avait avant avec avez
avoir avons beaucoup bien bon bonne c'est ça car ce ceci cela celle celles celui cent cependant certain certaine certains ces cet
cette ceux chaque chez chose choses comme comment contre d'un d'une dans de déjà depuis dernier dernière des deux devant devrait dire
doit doivent donc dont du durant elle elles en encore enfin ensuite entre environ es est et étaient était été être eu eux fait faire
faut fois font grand grande gros hier hors ici il ils j'ai je jour jours jusque l'on la là laquelle le lequel les leur leurs lors
lorsque lui ma mais mal me même mêmes mes mieux moi moins mois mon moyen n'est ne ni non nos notre nous nouveau nouvelle on ont ou où
oui par parce parfois partie pas peu peut peuvent plus plusieurs plutôt point pour pourquoi premier première près presque puis qu'il
quand que quel quelle quelles quelque quelques quels qui quoi rien s'il sa sans se selon sera seront ses seul seulement si sinon soit
son sont sous souvent suis sur surtout ta tant te tel telle temps tes toi ton toujours tous tout toute toutes très trois trop tu un
une vers veut voici voilà vos votre vous vraiment y lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai
juin juillet août septembre octobre novembre décembre an ans année années semaine heure heures
lesquels lesquelles duquel auxquels desquels davantage outre absolument quasiment quasi
""")
ITALIAN: Final = word_set("""
a abbiamo ad adesso ai al alcuni alcune alla alle allo allora altra altre altri altro anche ancora anno anni appena attraverso avere
aveva ben bene c'è casa caso che chi ci ciascuno ciò circa col come con contro cosa cose così cui d'un da dai dal dalla dalle davanti
degli dei del della delle dello dentro di dopo dove due dunque e è ecco ed era erano essere fa fare fatto fino forse fra giorno giorni
già gli grande ha hanno ho i il in infatti insieme invece io la là le lei lo loro lui ma mai meglio meno mentre mi mia mie miei mio
modo molta molte molti molto ne nei nel nella nelle nessun nessuna niente no noi non nostra nostro nulla nuova nuovo o ogni ogni oggi
oltre ora parte per perché però più po poco poi possono potrebbe prima primo proprio può qua quale quali qualche quando quanto quasi
quattro quella quelle quelli quello questa queste questi questo qui quindi se secondo sei sempre senza si sia siamo sono sopra sotto
sta stata stati stato stesso su sua sue sugli sui sul sulla suo suoi tale tanto te tempo ti tra tre troppo tu tutta tutte tutti tutto
un una uno va vari verso via viene voi volta volte vostro lunedì martedì mercoledì giovedì venerdì sabato domenica gennaio febbraio
marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
""")
PORTUGUESE: Final = word_set("""
a à ainda agora ai algo algum alguma algumas alguns além ali ambos ano anos ante antes ao aos apenas após aquela aquele aquilo aqui
as às assim até atrás através bem boa bom cada caso cerca coisa coisas com como contra cujo da das de dele dela deles depois desde
dessa desse desta deste deve devem dia dias disso do dois dos duas durante e é ela elas ele eles em embora enquanto então entre era
eram essa essas esse esses esta está estamos estão estar estas estava este estes estou eu exemplo faz fazer fez foi foram forma grande
há hoje isso isto já lá lhe lhes lo logo lugar maior mais mas me mês meses mesma mesmo meu meus minha muita muito muitos na nada não
nas nem nenhum nessa nesse nesta neste ninguém no nos nós nossa nosso nova novo num numa nunca o onde ontem os ou outra outras outro
outros para parte pela pelas pelo pelos pequeno per perto pode podem poder pois por porque pouco primeira primeiro própria próprio qual
qualquer quando quanto quase que quem quer se seja sem sempre sendo ser será seu seus si sido sim só sobre sua suas tal também tanto
tão te tem têm tempo tenho ter tinha toda todas todo todos três tu tudo último um uma umas uns vai vamos vão vários vez vezes você
vocês segunda terça quarta quinta sexta sábado domingo janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro
dezembro semana hora horas
""")
DUTCH: Final = word_set("""
aan af al alle alleen alles als altijd ander andere anders ben bent bij binnen bijna daar daarna daarom dag dagen dan dat de deze die
dit doen doet door dus een eens eerst eerste elk elke en enkele er erg even ga gaan gaat geen geweest goed groot had hadden heb hebben
heeft heel hem hen het hier hij hoe hun iemand iets ik in is ja je jij jullie kan keer komen komt kon kunnen laat later maar maken me
meer men met mij mijn minder misschien moet moeten na naar niet niets nieuw nieuwe nog nooit nu of om omdat ons onze ook op over paar
per samen sinds soms te tegen ten ter terug terwijl toch toen tot tussen twee u uit uur van vaak vanaf veel verder via voor vooral wat
waar waarom want waren was wat we weer week wel welke werd weten wie wij wil worden wordt zal ze zeer zelf zich zij zijn zo zoals
zonder zou maandag dinsdag woensdag donderdag vrijdag zaterdag zondag januari februari maart april mei juni juli augustus september
oktober november december jaar jaren
""")
BEFORE_NOUNS: Final = word_set("""
el la los las un una unos unas de del al en con sin por para su sus mi mis tu tus nuestro nuestra este esta estos estas ese esa cada
otro otra sobre entre desde hasta segundo primer cualquier y o le les l'on des du au aux à dans sur avec sans pour par ce cette ces
chaque son sa ses mon ma mes votre notre et ou il lo gli uno dello della degli delle dei nel nella sul sulla da per con suo sua o os as
um uma do da dos das no na nos nas ao pelo pela com em seu sua e ou
""")  # of Spanish, French, Italian and Portuguese
BEFORE_VERBS: Final = word_set(
    "to i you we they he she it can can't cannot will won't would should must may might could don't doesn't didn't not please let's who"
)
SURE_ENGLISH: Final = word_set(
    "the and of to is it for on that with by at are be this or from was not but"
)  # short, and of no other language
UNITS: Final = word_set("""
mm cm dm km m2 m3 mg kg ml cl dl ms ns µs hz khz mhz ghz kb mb gb tb kib mib gib mv kv kw kwh wh mah ah va db dpi px pt fps rpm kcal mph kmh am pm bps mbps gbps
eur usd gbp chf jpy iu
""")
LANGUAGES: Final = {
    "en": ENGLISH,
    "de": GERMAN,
    "es": SPANISH,
    "fr": FRENCH,
    "it": ITALIAN,
    "pt": PORTUGUESE,
    "nl": DUTCH,
}

JAPANESE: Final = word_set("""
従来 場合 必要 可能 自分 方法 関係 以外 一部 全体 結果 理由 状態 影響 使用 利用 存在 意味 種類 名称 現在 時期 時代 当時 同様 一般 多数 最大
最小 最初 最後 中心 部分 内容 特徴 目的 今回 前回 次回 以下 以上 以前 以降 以来 今日 明日 昨日 今年 去年 昨年 来年 毎日 毎年 毎週 今週 来週 先週
今月 来月 先月 最近 時間 時点 時々 途中 本当 普通 大変 非常 重要 主要 様々 色々 人々 我々 彼女 私達 自体 自身 相手 本人 人間 皆様 何度 何故 何人
一方 他方 両方 双方 反面 同時 同年 翌年 翌日 前年 前日 後半 前半 初期 末期 中期 年代 世紀 年間 期間 毎回 一度 一番 一緒 一切 一旦 全部 全員 全般
大半 大部 少数 複数 単独 多く 程度 限度 範囲 対象 対応 実際 実現 実施 開始 終了 完了 発生 発見 発表 確認 説明 紹介 参照 参考 注意 変更 変化 追加
削除 作成 設定 設置 設立 構成 形成 成立 決定 指定 規定 予定 予想 記録 記述 記載 表示 表現 提供 提案 導入 採用 適用 活用 応用 検討 考慮 理解 認識
増加 減少 上昇 低下 向上 改善 継続 維持 移動 移行 到着 出発 参加 担当 所属 所有 保有 獲得 取得 入手 使途 用意 準備 完全 十分 不足 簡単 複雑 容易
困難 有名 無理 大切 得意 苦手 他人 仕方 一言 言葉 名前 午前 午後 夕方 今朝 今夜 週末 平日 毎朝 毎晩 直接 間接 特別 特定 特殊 通常 正式 主張 原因
コト モノ トコロ ページ タイプ メモ ケース 正直 絶対 結局 直後 直前 際立 自由 代表 出身 同士 連続 開催 別名 通称 略称 総称 俗称 由来 起源 呼称 登場
""")
JAPANESE_HEADS: Final = (  # prefixes that are not part of the word
    "現在", "当時", "明日", "今日", "昨日", "今回", "最近", "今年", "来年", "去年", "昨年", "毎年", "毎月", "毎日", "以降", "以後", "以前", "一般", "同年",
    "翌年", "翌日", "前日", "従来", "本来", "通称", "約", "各", "全", "当", "時々", "比較的", "両", "某", "故",
)  # fmt: skip

CHINESE: Final = word_set("""
面向 日益 点点 证明 压根儿 无法 全程 二者 距今 一波 那时候 正是如此 关键在于
东西 事情 时候 时间 问题 方法 方式 情况 部分 方面 内容 原因 结果 目的 作用 意思 意义 过程 关系 过程中 地方 人们 大家 自己 别人 他人 我们 你们 他们
今天 明天 昨天 现在 以后 以前 之后 之前 之间 之中 当时 目前 最后 最近 开始 结束 进行 使用 可以 需要 可能 应该 能够 如果 因为 所以 但是 而且 并且
或者 以及 还有 只有 只要 虽然 不过 然后 然而 于是 因此 例如 比如 其中 其他 其它 一些 一个 一种 一样 一般 一定 一起 一直 一下 这个 那个 这些 那些
这样 那样 这里 那里 什么 怎么 怎样 如何 为何 哪里 哪些 多少 很多 许多 非常 十分 特别 比较 更加 已经 正在 曾经 不断 不同 相同 主要 重要 基本 简单
复杂 具体 实际 真正 完全 直接 通过 根据 按照 关于 对于 由于 为了 没有 不是 不要 不能 不会 觉得 认为 知道 看到 发现 成为 作为 包括 属于 存在 出现
产生 提供 表示 说明 形成 得到 保持 变成 之类 等等 上面 下面 里面 外面 前面 后面 左右 个人 本身 自身 有人 有的 有些 某个 某种 各种 各个 每个 所有
任何 整个 全部 第一 第二 第三 首先 其次 再次 总之 换句话说 也就是说 状态 程度 角度 样子 特点 东西 日常 年 月 日 点 人 事 话 字 句 词 想法 做法
笔者 作者 本文 文章 参考 链接 来源 更新 创建 标签 模板 目录 附件 下载 点击 打开 关闭 图片 截图 示例 例子 用户 上午 下午 晚上 早上 星期 礼拜 分钟 小时
""")
KOREAN_ENDINGS: Final = (
    "에서는", "으로는", "에게서", "이라고", "입니다", "합니다", "했습니다", "에서", "으로", "에게", "까지", "부터", "처럼", "보다", "이다", "하는", "한다",
    "하고", "했다", "은", "는", "이", "가", "을", "를", "의", "에", "로", "와", "과", "도", "만",
)  # fmt: skip
KOREAN: Final = word_set(
    "그리고 그러나 하지만 그래서 또는 및 이것 저것 그것 우리 나는 오늘 내일 어제 지금 때문 경우 정도 모든 매우 너무 정말 있다 없다 있는 없는"
)
