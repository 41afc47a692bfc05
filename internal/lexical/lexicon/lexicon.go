// Package lexicon contains what the lexical classifier knows about English, Portuguese and
// Spanish before it has seen a registry: which words mean the same, and which are common.
// All words are folded: in lower case and without accents.
package lexicon

// Synonyms are words with nearly the same meaning at work, one meaning a line, and phrases
// of up to four words, which are joined with underscores. They let a registry be asked in words that it does not contain, and in the other languages. Words
// with several frequent meanings (leave, charge as a verb) are only in a line if the other
// meanings are rare in requests.
const Synonyms = `
invoice bill receipt fatura factura recibo
refund reimbursement reimburse reembolso reembolsar reembolsarme estorno money_back dinheiro_de_volta devolver_el_dinero
cancel cancelar anular cancelamento cancelacion anulacion cancellation abort
order purchase pedido encomenda compra
track trace rastrear rastreio rastrea seguimiento
parcel package shipment pacote paquete envio shipping
deliver delivery entrega entregar
address endereco morada direccion domicilio
payment pay paid pagamento pagar pago pague
charge cobranca cobro cobrado cargo debito
price cost costs preco precio custo custos coste costo gasto gastos gastar spend spending spent expensive
discount coupon voucher promo desconto descuento cupom cupon
stock inventory estoque existencias inventario
warehouse armazem almacen deposito bodega
supplier vendor fornecedor proveedor
product item article produto producto articulo
catalog catalogue catalogo
shop store loja tienda
customer client cliente
return devolver devolucao devolucion devolva devuelva
warranty guarantee garantia
exchange swap troca trocar intercambio
size tamanho talla tamano
reserve reservation booking book reserva reservar
hotel lodging hospedagem alojamiento
room quarto habitacion
flight voo vuelo
trip travel journey viagem viaje viajar
luggage baggage bagagem equipaje
ticket bilhete ingresso
seat assento asiento

open abrir abre abra abram
close fechar cerrar fecha cierra
create criar crear cria crea crie cree
change modify edit mudar cambiar alterar modificar mude cambia altere
update atualizar actualizar atualize actualiza
add adicionar agregar anadir acrescentar
send enviar mandar envie envia mande manda
write escrever escribir redigir redactar escreva escribe redacta redija
draft rascunho borrador
explain explicar explique explica
search find buscar procurar encontrar pesquisar busca procura busco encuentra
check verify verificar comprobar verifique comprueba confira
generate gerar generar gere genera
request solicitar pedir solicito peco solicitud
show list mostrar listar mostre muestra liste
recommend suggest recomendar sugerir recomende recomienda
compare comparar compara comparison
approve aprovar aprobar approval
publish publicar publique publica
optimize optimise speed otimizar optimizar acelerar
calculate compute calcular calcule calcula
count contar conte cuenta
restart reboot reiniciar reinicie reinicia
reset redefinir restablecer resetar
block freeze bloquear bloquee bloqueie
unlock unblock desbloquear
activate enable ativar activar habilitar
deactivate disable desativar desactivar
extend prolong prorrogar estender extender
print imprimir
sign assinar firmar signature firma
plan planejar planificar planear planejamento planificacion

password passcode passwd senha contrasena clave credential credentials
login signin logon acesso iniciar
account conta
user username usuario utilizador
access permission permissions permissao permisos permiso authorization
laptop computer pc notebook computador ordenador portatil
printer impressora impresora
screen display tela pantalla
phone telephone telefone telefono celular movil mobile smartphone
email mail correio correo
network wifi internet rede conexion connection conexao
server servidor
software program programa aplicacao aplicacion application app
hardware device equipamento equipo dispositivo
install installation instalar instalacao instalacion setup
error bug fault erro falha fallo defect defeito defecto
crash crashed crashing outage down caiu caido
incident incidente incidencia
backup copia
security seguranca seguridad
vulnerability vulnerabilities exploit vulnerabilidade vulnerabilidad cve
virus malware ransomware phishing
alert alarm alerta alarma
monitoring monitorizacao monitoramento monitoreo monitorear observability
deploy deployment rollout implantar desplegar implantacao despliegue
pipeline job workflow etl
database db bd
query sql consulta
table tabela tabla
dashboard painel panel
report relatorio informe reporte
chart graph grafico plot
metric metrics kpi metrica metricas
data dataset dados datos
analysis analyze analyse analytics analise analisis analizar analisar
forecast predict prediction projection previsao pronostico prevision
test tests testing teste testes prueba pruebas
code codigo source
repository repo repositorio
function method funcao funcion
review revisar revisao revision inspect inspecao inspeccion revise revisa
document docs documentation documento documentacao documentacion manual handbook
translate translation translator traduzir traducao traducir traduccion traduza
summary summarize summarise resumo resumir resumen recap tldr
meeting reuniao reunion appointment
calendar agenda schedule calendario
file files arquivo archivo ficheiro
image picture photo imagem imagen foto
text texto
message mensagem mensaje
word palavra palabra

employee staff worker funcionario empleado colaborador trabajador
hire recruit recruitment recrutar reclutar recrutamento
candidate applicant candidato
interview entrevista
onboarding onboard integracao incorporacion induction
vacation holiday holidays ferias vacaciones pto day_off days_off time_off
absence ausencia falta sick illness doente enfermo
payslip payroll paycheck salary wage wages salario nomina holerite contracheque sueldo ordenado
bonus premio
training course treinamento formacion capacitacion curso formacao
overtime horasextras
contract agreement contrato acordo acuerdo nda
lawyer legal juridico advogado abogado attorney
privacy gdpr lgpd privacidade privacidad rgpd
delete erase remove excluir apagar eliminar borrar suprimir wipe borra elimina apague exclua
export download exportar baixar descargar
upload carregar subir
consent consentimento consentimiento
compliance conformidade cumplimiento
audit auditoria
policy politica
budget orcamento presupuesto
expense expenses despesa despesas
tax taxes imposto impostos impuesto impuestos iva vat
bookkeeping contabilidade contabilidad
bank banco
card cartao tarjeta
transfer wire transferencia transferir
balance saldo
loan credit emprestimo prestamo credito
mortgage hipoteca
insurance seguro
fraud fraude scam
interest juros interes
investment invest investimento inversion invertir
currency moeda moneda divisa
subscription subscribe assinatura suscripcion subscricao
renew renewal renovar renovacao renovacion
upgrade melhorar

complaint complain reclamacao queja reclamar reclamo reclamacion
feedback opinion opinioes opiniao comentario comentarios
survey encuesta questionnaire inquerito
rating score puntuacion pontuacao
support helpdesk suporte soporte assistance
problem issue problema trouble
question pergunta pregunta
answer reply response resposta respuesta
contact contato contacto
campaign campanha campana
advertisement ad ads anuncio publicidade publicidad advertising
newsletter boletim boletin
audience audiencia
social instagram facebook linkedin twitter
post publicacao publicacion
copywriting slogan tagline headline caption
brand marca
website site web webpage sitio
event evento
sales vendas ventas
lead prospect
deal negocio oportunidad opportunity
quote quotation cotacao cotizacion
proposal proposta propuesta

maintenance repair fix manutencao mantenimiento reparo reparacion reparar consertar conserto arreglar broken quebrado roto avariado averia
machine equipment maquina
cleaning clean limpeza limpieza limpar limpiar
energy electricity power energia eletricidade electricidad
water agua
heating aquecimento calefaccion
elevator lift elevador ascensor
building edificio predio
parking estacionamento aparcamiento estacionamiento
car vehicle carro coche auto veiculo vehiculo
safety accident acidente accidente injury
quality qualidade calidad
production producao produccion manufacturing
transport logistics logistica transporte
route rota ruta
map mapa
doctor physician medico
patient paciente
medicine medication drug remedio medicamento farmaco
prescription receita receta
pharmacy farmacia
hospital clinic clinica
exam exame examen
result resultado
student aluno estudiante estudante
teacher professor docente profesor
class lesson aula clase
school escola escuela
university universidade universidad
library biblioteca
grade calificacion
enroll enrollment enrol matricula matricular inscricao inscripcion register registration
scholarship bolsa beca
permit license licence licenca licencia
certificate certificado certidao
waste garbage trash rubbish lixo basura residuo
street rua calle
neighbour neighbor vizinho vecino
weather clima
`

// Common are frequent words of everyday language that are not stop words: verbs that say
// what to do but not with what (check, send, update), times, numbers, people, and general
// nouns and adjectives. A registry is too small to show that they are frequent. They are
// compared by their stems.
const Common = `
able accept analysis analyze analyse add again ago allow almost alone along already always another answer anyone anything anyway apart appear apply approve
area arrange arrive ask assign available avoid away
back bad begin behind believe below best better between big bit both bother break bring broken build buy
call came cancel care carry case catch cause certain change cheap check choose clean clear close come complete confirm consider
contact continue copy correct could count couple create current cut
daily date dear decide definitely delete describe detail different difficult doing done door down draft drop due during
each early easy edit either else end enjoy enough enter entire especially even evening ever every everybody everyone everything
exactly expect explain extra
face fact fail fall family far fast favorite favourite feel few fill final find fine finish first fix follow food forget forgot
former forward found free friend friday full fun further
gave generate get give glad goes going gone gonna gotta good got great group grow guess guy
half hand handle happen happy hard hate head hear heard held help hey high hold home hope hour house however huge
idea immediately important include inform information instead interested issue
join joke just
keep kept kid kind knew know known
large last late lately later lead learn least leave left less letter life light line list little live long look lose lost lot
love low lunch
made main make man manage many march matter maybe mean meant meet mention middle mind mine minute miss missing moment monday money
month morning move much myself
name near nearest necessary never new next nice night nobody none normal note nothing notice november now number
october offer often old once one only open option order other otherwise ought outside own
part people perhaps person pick piece place plan play point possible prefer prepare present pretty previous probably problem process
produce properly provide put
question quick quite
raise rather reach read ready real really reason receive recently recommend regarding related remember remind remove reply report
request require resolve result return review right room run
said same sat saturday save saw say second see seem seen sell send sent september serious set several short show side simple since
single sit situation small solve somebody someone something sometimes somewhere soon sorry sort sound speak special spend stand
start state status stay step still stop stuff submit such suddenly suggest summary sunday support suppose sure switch
take talk team tell ten term test than thing think third though thought three thursday till time tiny tired today together told
tomorrow tonight took top total touch toward town track tried trouble true try tuesday turn twice two type
understand until update upon urgent use used useful usual usually
various version view visit
wait walk wanna warn watch way wednesday week weekend weird well went whatever while whole wife wish within woman wonder word work
world worry worse worst worth write written wrong
year yes yesterday yet young
afternoon april august december february january july june may
zero four five six seven eight nine hundred thousand
day

abrir aceitar analisar analise achar acontecer adicionar agora ainda ajuda ajudar alem algo alguem algum alguma alguns algumas alterar amanha amigo
antes ano anterior apagar apenas aqui assim ate atras atualizar avisar
baixo bem boa bom buscar
cada cade caso cedo certo chegar cheio coisa colocar comecar completo comprar confirmar conhecer conseguir consigo continuar contar
corrigir criar
dar data dentro desde deixar depressa devagar dever dia dias diferente dificil dizer dois duas duvida
embora encontrar enquanto entao entrar enviar enviem errado errada escolher escrever esperar explicar
facil falar faltar fazer faz fechar ficar fim final fora forma
gente gerar grande
hoje homem hora horas
ideia igual importante incluir informacao informacoes ir
janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro
lado lembrar ler levar ligar lista listar lugar
mais mandar manha manter marcar melhor menos mensal mes meses mesmo mesma mostrar mudar mulher mundo
nada nenhum noite nome nova novo numero nunca
obter olhar ontem outro outra outros
pagina parar parece parte passar passado passada pedir pegar pensar perder perguntar perto pessoa pessoas pior poder ponto pouco
precisa precisar primeiro primeira problema procurar proximo proxima publicar
qualquer quase quanto quantos quantas
receber recomendar refazer remover resolver responder resposta resumir rever revisar
saber sair segunda semana sempre sexta sabado domingo terca quarta quinta situacao sobre solicitar
tarde tempo tentar ter terminar texto tipo tirar tocar todo toda todos todas tomar trabalho trazer tres trocar tudo
ultimo ultima unico urgente usar uso
vai vamos vale ver verificar vez vezes vir viver volta voltar

abrir aceptar analizar analisis actualizar adelante agregar ahora ahi alguien algun alguno alguna amigo ano anos anadir antes aqui asi aun aunque ayer
ayuda ayudar
bajo bastante bien borrar bueno buena buscar
cada calle cambiar casa casi cerca cerrar claro comenzar comprar comprobar confirmar conocer conseguir consultar contar corregir
cosa crear creo cual cualquier cuenta cuanto cuantos
dar dato decir dejar demas dentro dia dias diferente dificil dime dinero donde dos dura duracion
empezar encontrar enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
entrar enviar escribir escuchar esperar explicar
facil falta fecha fin final forma fuera
gente gran grande gustar
haber hablar hace hacer haz hizo hombre hora horas hoy
igual importante incluir informacion ir
jamas juntos
lado leer lejos lista llamar llegar llevar lugar
lunes martes miercoles jueves viernes sabado domingo
mal malo manana mandar manera mayor mejor menor mes meses mismo misma mostrar mover mucho mucha mujer mundo
nada nadie necesita necesitar ningun ninguno noche nombre nuevo nueva numero nunca
obtener otra otro otros otras
parar parece parte pasado pasada pasar pedir pensar peor pequeno perder persona personas poco poder poner pregunta preguntar primer
primero primera problema proximo proxima puesto punto
quedar querer quien quitar quizas
realmente recibir recomendar recordar resolver responder respuesta resumir revisar
saber sacar salir seguir segundo segunda semana siempre situacion solicitar solo
tarde tener terminar texto tiempo tipo tocar toda todas todavia todo todos tomar trabajo traer tres
ultimo ultima unico usar uso
va vale vamos veces venir ver verificar vez vida viejo vivir volver
`
