package email

import "strings"

// Words and phrases of mails in English, Portuguese, Spanish and Chinese, folded.

// header is the kind of a mail header.
type header int

const (
	noHeader header = iota
	headerFrom
	headerTo
	headerSubject
	headerSent
	headerDate
	headerOther
)

var headerNames = listKinds(map[header]string{
	headerFrom:    "from|de|发件人|寄件者|寄件人",
	headerTo:      "to|cc|bcc|para|cco|com copia|con copia|收件人|抄送|密送|收件者",
	headerSubject: "subject|assunto|asunto|主题|主旨|标题",
	headerSent:    "sent|sent at|enviado|enviada|enviado em|enviada em|enviado el|enviada el|发送时间|发送日期",
	headerDate:    "date|data|fecha|日期|时间",
	headerOther: "reply-to|responder a|responder para|importance|importancia|priority|prioridade|prioridad|attachments|anexos|adjuntos|重要性|附件|" +
		"message-id|mime-version|content-type|content-transfer-encoding|in-reply-to|references|return-path|received|x-mailer|x-priority|thread-topic|thread-index",
})

// prefixKind is the kind of a prefix of a subject.
type prefixKind int

const (
	replyPrefix prefixKind = iota
	forwardPrefix
)

var subjectPrefixes = listKinds(map[prefixKind]string{replyPrefix: "re|res|aw|回复|答复|回覆", forwardPrefix: "fw|fwd|enc|rv|wg|转发"})

// closingKind is how sure a phrase is a closing.
type closingKind int

const (
	casualClosing closingKind = iota // mostly thanks, which also begin sentences
	formalClosing
	fixedClosing // has no other meaning
)

var closings = listKinds(map[closingKind]string{
	casualClosing: "best|thanks|thank you|thx|many thanks|thanks a lot|thanks in advance|thank you in advance|cheers|ty|thank you very much|thanks so much|" +
		"thanks again|take care|talk soon|much appreciated|warmly|thank you for your help|thanks for your help|" +
		"obrigado|obrigada|muito obrigado|muito obrigada|grato|grata|agradecido|agradecida|desde ja agradeco|desde ja obrigado|valeu|beijos|" +
		"gracias|muchas gracias|mil gracias|gracias de antemano|muchas gracias de antemano|muy agradecido|muy agradecida",
	formalClosing: "regards|many regards|rgds|kr|br|cordially|respectfully|best wishes|with best wishes|all the best|" +
		"cumprimentos|com cumprimentos|saudacoes|att|atte|at.te|sem mais|abracos|abraco|um abraco|grande abraco|abs|forte abraco|" +
		"saludos|un saludo|un abrazo|abrazos|sinceramente|cordialmente|respeitosamente",
	fixedClosing: "kind regards|kindest regards|best regards|warm regards|warmest regards|with kind regards|with best regards|yours sincerely|yours faithfully|" +
		"yours truly|sincerely|sincerely yours|respectfully yours|atenciosamente|com os melhores cumprimentos|melhores cumprimentos|" +
		"os melhores cumprimentos|cordiais cumprimentos|saudacoes cordiais|saludos cordiales|cordiales saludos|un cordial saludo|" +
		"mit freundlichen grußen|cordialement|bien cordialement|un saludo cordial|reciba un cordial saludo|muy atentamente|atentamente|saludos atentos",
})

// closingStarts has the first words of the closings.
var closingStarts = func() map[string]bool {
	starts := map[string]bool{}
	for phrase := range closings {
		first, _, _ := strings.Cut(phrase, " ")
		starts[first] = true
	}
	return starts
}()

// pointerWords point to the quote after the text of the sender.
var pointerWords = set("below fyi forwarding abaixo encaminho segue abajo reenvio")

var chinesePointers = []string{"下面", "如下", "以下", "转发"}

// placeWords point to lines that follow at once, such as the session of a program: "what is wrong here?".
var placeWords = set("here aqui aca")

// aboveWords point to the quote before the text of the sender.
var aboveWords = set("above acima arriba")

var chineseAbove = []string{"上面", "以上", "上文"}

// closingSentences begin the sentence before a closing.
var closingSentences = []string{
	"looking forward to ", "i look forward to ", "we look forward to ", "awaiting your ", "fico no aguardo", "ficamos no aguardo", "aguardo retorno",
	"aguardo seu retorno", "no aguardo", "desde ja agradeco", "quedo a la espera", "quedamos a la espera", "a la espera de ", "agradezco de antemano",
}

var honorifics = set("mr. mrs. ms. dr. prof. sr. sra. dra. eng. ing. lic.")

var chineseClosings = []string{
	"此致敬礼", "此致", "敬礼", "谢谢您", "谢谢", "多谢", "祝好", "顺祝商祺", "顺颂商祺", "祝商祺", "祝您工作愉快", "祝工作愉快", "祝工作顺利", "致敬", "敬上",
}

var separators = struct{ original, forward map[string]bool }{
	original: set("original message|original appointment|mensagem original|mensaje original|原始邮件|邮件原件|原邮件"),
	forward: set("forwarded message|begin forwarded message|mensagem encaminhada|mensagem reencaminhada|inicio da mensagem encaminhada|" +
		"inicio da mensagem reencaminhada|mensaje reenviado|inicio del mensaje reenviado|转发的邮件|转发邮件|转发的信息|下面是被转发的邮件"),
}

var (
	attributionStarts = set("on|em|no|el|a|le")
	attributionVerbs  = set("wrote|escreveu|escribio")
	postscriptMarks   = []string{"P.S.", "P.S", "P.D.", "P.D", "PS:", "PS：", "PS.", "PS,", "PS -", "PS –", "PS ", "PD:", "PD ", "附言", "又及"}
	contactLabels     = set("tel|t|phone|p|mobile|m|cell|fax|f|e|email|e-mail|mail|web|website|site|skype|whatsapp|telefone|telemovel|celular|cel|fone|" +
		"telefono|movil|correo|linkedin|address|endereco|direccion|电话|手机|邮箱|传真|地址|微信|网址|电邮")
)

// maxNoticeStart bounds the bytes of a line that are compared with the beginnings of notices.
const maxNoticeStart = 60

var (
	deviceNotices = []string{"sent from my ", "sent from mail for ", "get outlook for ", "sent via ", "enviado do meu ", "enviado desde mi ", "发自我的"}
	noticeStarts  = []string{
		"this e-mail", "this email", "this message", "this communication", "the information ", "the content", "confidential", "disclaimer", "if you are not the ",
		"if you have received", "please consider the environment", "think before", "esta mensagem", "este e-mail", "este email", "as informacoes ", "aviso ",
		"aviso:", "se voce ", "antes de imprimir", "este mensaje", "este correo", "la informacion ", "si usted ", "si ha recibido", "本邮件", "此邮件", "该邮件", "本电子邮件", "声明",
	}
	noticeWords = []string{
		"intended recipient", "intended solely", "intended only", "confidential", "in error", "before printing", "destinatario", "confidencia", "por engano",
		"por error", "imprimir", "environment", "机密", "保密", "误收", "收件人",
	}
)

// particles are the words in names and job titles that have no capital.
var particles = set("of for and at in the de da do das dos del la las los van von der den e y di du le to")

// jobWords are words of job titles and companies.
var jobWords = set("manager coordinator director officer analyst engineer developer specialist consultant assistant associate agent representative " +
	"supervisor administrator executive president vp ceo cfo cto coo head lead leader chief secretary accountant controller clerk broker planner buyer " +
	"operator technician architect scientist designer adviser advisor partner founder owner editor lawyer counsel nurse doctor professor teacher " +
	"researcher intern trainee dispatcher forwarder auditor treasurer department team dept office division ltd llc inc gmbh corp plc limited company co " +
	"gerente coordenador coordenadora diretor diretora analista engenheiro engenheira especialista consultor consultora assistente associado " +
	"supervisora administrador administradora presidente chefe secretario secretaria contador contadora despachante tecnico tecnica arquiteto " +
	"advogado advogada medico professora estagiario vendedor vendedora departamento equipe setor ltda s.a sa eireli cia " +
	"coordinador coordinadora directora ingeniero ingeniera asistente jefe jefa abogado abogada contable agente asesor asesora tecnica encargado " +
	"encargada responsable responsavel comercial equipo sl srl becario")

var chineseJobs = []string{"经理", "主管", "专员", "总监", "工程师", "协调员", "助理", "主任", "部长", "顾问", "代表", "总裁", "有限公司", "集团"}

// sentenceWords are in sentences, and not in signatures.
var sentenceWords = set("please pls plz my me i i'm i'd i've we you your it it's this that these is are was be been can could would should want need don't " +
	"also when where what how why which who until before tomorrow today asap still not have has had if " +
	"favor meu minha meus minhas eu quero preciso pode poderia gostaria tambem onde quando qual nao ja isto isso esta estou hoje amanha voce " +
	"mi mis yo quiero necesito puede puedes podria tambien donde cuando cual esto eso estoy hoy manana usted no")

// imperatives begin requests. A job title may begin with some of them: "Order Manager".
var imperatives = set("cancel send check track find get book order review update create add remove delete let give show tell make open close confirm reply " +
	"answer forward schedule reschedule change move stop pay refund fix help look see call write read translate summarize list test run start use return " +
	"cancele cancelar envie enviar mande verifique confira rastreie rastrear reserve reservar marque marcar altere mude atualize crie adicione remova apague " +
	"exclua confirme responda pague faca veja ajude mostre diga abra feche emita gere traduza resuma liste " +
	"cancela envia manda verifica revisa revise cambia cambie actualiza crea anade elimina borra confirma responde paga haz mira ayuda muestra dime abre cierra " +
	"rastrea traduce resume busca busque")

var chineseRequests = []string{
	"请", "我", "你", "吗", "呢", "帮", "怎", "什么", "哪", "多少", "为何", "取消", "查询", "查一下", "预订", "发送", "确认", "修改", "删除", "安排", "另外",
}

// set returns the set of words that are separated by white space or, if there is one, by "|".
func set(words string) map[string]bool {
	all := map[string]bool{}
	list := strings.Fields(words)
	if strings.Contains(words, "|") {
		list = strings.Split(words, "|")
	}
	for _, word := range list {
		all[word] = true
	}
	return all
}

// listKinds returns the kind of each phrase of lists that are separated by "|".
func listKinds[K comparable](lists map[K]string) map[string]K {
	kinds := map[string]K{}
	for kind, phrases := range lists {
		for phrase := range strings.SplitSeq(phrases, "|") {
			kinds[phrase] = kind
		}
	}
	return kinds
}
