package ranking_test

import (
	"slices"
	"testing"

	"github.com/caprouter/caprouter/internal/lexical/ranking"
)

// commonTools are tools of servers that are in wide use, as their servers describe them.
var commonTools = []ranking.Document{
	{Name: "files__read_text_file", Description: "Read the complete contents of a file from the file system as text. Handles various text encodings and provides detailed error messages if the file cannot be read. Use this tool when you need to examine the contents of a single file. Only works within allowed directories."},
	{Name: "files__write_file", Description: "Create a new file or completely overwrite an existing file with new content. Use with caution as it will overwrite existing files without warning. Handles text content with proper encoding. Only works within allowed directories."},
	{Name: "files__edit_file", Description: "Make line-based edits to a text file. Each edit replaces exact line sequences with new content. Returns a git-style diff showing the changes made. Only works within allowed directories."},
	{Name: "files__create_directory", Description: "Create a new directory or ensure a directory exists. Can create multiple nested directories in one operation. If the directory already exists, this operation will succeed silently. Only works within allowed directories."},
	{Name: "files__list_directory", Description: "Get a detailed listing of all files and directories in a specified path. Results clearly distinguish between files and directories with [FILE] and [DIR] prefixes. This tool is essential for understanding directory structure and finding specific files within a directory. Only works within allowed directories."},
	{Name: "files__move_file", Description: "Move or rename files and directories. Can move files between directories and rename them in a single operation. If the destination exists, the operation will fail. Both source and destination must be within allowed directories."},
	{Name: "files__copy_file", Description: "Copy a file to another path. If the destination exists, the operation will fail. Only works within allowed directories."},
	{Name: "files__delete_file", Description: "Remove a file. This cannot be undone. Only works within allowed directories."},
	{Name: "files__search_files", Description: "Recursively search for files and directories matching a pattern. Returns full paths to all matching items. Great for finding files when you don't know their exact location. Only searches within allowed directories."},
	{Name: "memory__create_entities", Description: "Create multiple new entities in the knowledge graph"},
	{Name: "memory__add_observations", Description: "Add new observations to existing entities in the knowledge graph"},
	{Name: "memory__delete_relations", Description: "Delete multiple relations from the knowledge graph"},
	{Name: "memory__read_graph", Description: "Read the entire knowledge graph"},
	{Name: "memory__search_nodes", Description: "Search for nodes in the knowledge graph based on a query"},
	{Name: "db__list_tables", Description: "List the tables of the database"},
	{Name: "db__read_rows", Description: "Read rows of a table"},
	{Name: "db__update_row", Description: "Update a row of a table with new values"},
	{Name: "db__delete_row", Description: "Delete a row of a table"},
	{Name: "mail__send_message", Description: "Send an email message to one or more recipients"},
	{Name: "mail__search_messages", Description: "Search the messages of the mailbox"},
	{Name: "mail__delete_message", Description: "Delete an email message"},
}

// A tool is found by what it does, and not only by what it does it with, in all three languages.
func TestRanker_FindsToolByVerb(t *testing.T) {
	r := ranking.New(commonTools)
	for _, tc := range []struct {
		want    string
		queries []string // in English, Portuguese and Spanish
	}{
		{"files__read_text_file", []string{"read a file", "ler um arquivo", "leer un archivo", "leia o ficheiro", "lee este fichero"}},
		{"files__write_file", []string{"write a file", "save a file", "gravar um arquivo", "salvar o arquivo", "escrever um ficheiro", "guardar fichero", "escribe un archivo"}},
		{"files__edit_file", []string{"edit a file", "editar um arquivo", "modificar un archivo", "edita el fichero"}},
		{"files__create_directory", []string{"create a folder", "criar uma pasta", "crear una carpeta"}},
		{"files__list_directory", []string{"list a directory", "listar um diretório", "lista un directorio", "mostrar el directorio"}},
		{"files__move_file", []string{"rename a file", "mover um arquivo", "mueve el archivo", "renomear o ficheiro", "renombrar un fichero"}},
		{"files__copy_file", []string{"copy a file", "copiar um arquivo", "copia el fichero", "duplicar un archivo"}},
		{"files__delete_file", []string{"erase a file", "apagar um arquivo", "excluir o arquivo", "borrar un archivo", "elimina el fichero"}},
		{"files__search_files", []string{"find files", "procurar arquivos", "pesquisar ficheiros", "buscar archivos", "encuentra ficheros"}},
		{"memory__create_entities", []string{"create entities", "criar entidades", "crear entidades"}},
		{"memory__add_observations", []string{"add an observation", "adicionar uma observação", "añadir una observación", "agregar observaciones"}},
		{"memory__delete_relations", []string{"delete a relation", "apagar uma relação", "eliminar una relación"}},
		{"memory__read_graph", []string{"read the graph", "ler o grafo", "leer el grafo"}},
		{"memory__search_nodes", []string{"search nodes", "procurar nós do grafo", "buscar nodos"}},
		{"db__list_tables", []string{"list the tables", "listar as tabelas", "listar las tablas", "mostrar las tablas"}},
		{"db__read_rows", []string{"read rows of the table", "ler linhas da tabela", "leer filas de la tabla"}},
		{"db__update_row", []string{"update a row", "atualizar uma linha da tabela", "actualizar una fila de la tabla"}},
		{"db__delete_row", []string{"delete a row", "apagar uma linha da tabela", "borrar una fila de la tabla"}},
		{"mail__send_message", []string{"send an email", "enviar um e-mail", "enviar un correo", "manda una mensagem"}},
		{"mail__search_messages", []string{"find messages", "procurar mensagens", "buscar mensajes"}},
		{"mail__delete_message", []string{"delete an email", "apagar uma mensagem", "borrar un correo", "elimina el mensaje"}},
	} {
		for _, query := range tc.queries {
			got := r.Rank(query)
			if len(got) == 0 || got[0].Name != tc.want {
				t.Errorf("%q: got %v, want %s first", query, got[:min(3, len(got))], tc.want)
			}
			if !slices.ContainsFunc(got, func(d ranking.Result) bool { return d.Name == tc.want }) {
				t.Errorf("%q: %s is not found", query, tc.want)
			}
		}
	}
}
