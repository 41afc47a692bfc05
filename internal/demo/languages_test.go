package demo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/demo"
)

// The prompts differ from the examples of the registry.
func TestRegistry_RoutesPromptsInFourLanguages(t *testing.T) {
	tests := []struct {
		prompt string
		intent string
		agents []string
	}{
		{"Could you check this python module for errors and bad practices please?", "code_review", []string{demo.QualityAgent}},
		{"Find bugs in the attached Python script, it crashes at night", "code_review", []string{demo.QualityAgent}},
		{"Faça uma revisão de código deste módulo Python, por favor", "code_review", []string{demo.QualityAgent}},
		{"Encuentra errores en este script de Python antes del despliegue", "code_review", []string{demo.QualityAgent}},
		{"检查这个 Python 脚本的错误", "code_review", []string{demo.QualityAgent}},
		{"Why is this Databricks notebook so slow on large tables?", "databricks_review", []string{demo.QualityAgent}},
		{"Revisa este notebook de Databricks, tarda dos horas", "databricks_review", []string{demo.QualityAgent}},
		{"审查这个 Databricks 笔记本", "databricks_review", []string{demo.QualityAgent}},
		{"Check this serverless handler written in Python", "serverless_review", []string{demo.QualityAgent}},

		{"According to the docs, what happens when a registry file is broken?", "doc_answering", []string{demo.RAGAgent}},
		{"O que os docs dizem sobre o failover?", "doc_answering", []string{demo.RAGAgent}},
		{"¿Qué dicen los docs sobre los tokens?", "doc_answering", []string{demo.RAGAgent}},
		{"根据 docs 回答这个问题：什么是任务？", "doc_answering", []string{demo.RAGAgent}},
		{"Search the kb_internal knowledge base for the on-call rota", "retrieval_qa", []string{demo.RAGAgent}},

		{"What are the top cost drivers this month on Azure?", "cost_analysis", []string{demo.BillingAgent}},
		{"Analise os custos do Azure deste trimestre", "cost_analysis", []string{demo.BillingAgent}},
		{"¿Cuánto gastamos en Databricks el mes pasado?", "cost_analysis", []string{demo.BillingAgent}},
		{"分析 Azure 的费用", "cost_analysis", []string{demo.BillingAgent}},

		{"Book me a flight to Porto", contract.Unknown, nil},
		{"Escreva um poema sobre o mar", contract.Unknown, nil},
		{"¿Quién ganó el partido de ayer?", contract.Unknown, nil},
		{"明天天气怎么样", contract.Unknown, nil},
		{"hello", contract.Unknown, nil},
	}
	base := startDemo(t)
	for _, tt := range tests {
		t.Run(tt.prompt, func(t *testing.T) {
			resp := postRequest(t, base, &contract.Request{
				Content: contract.Content{Prompt: tt.prompt}, Options: contract.Options{DryRun: true},
			})
			clf := resp.Decision.Classification
			if clf.Intent != tt.intent {
				t.Errorf("intent %s, want %s; classification %+v", clf.Intent, tt.intent, clf)
			}
			if diff := cmp.Diff(tt.agents, resp.Decision.Chosen, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}
