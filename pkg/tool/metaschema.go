package tool

// metaSchema describes the keywords of both drafts, which differ for checking
// only in that draft 7 spells tuples as an array under items. It is written in
// draft 2020-12.
func metaSchema(tuples bool) string {
	items := `{"$ref":"#"}`
	if tuples {
		items = `{"anyOf":[{"$ref":"#"},{"$ref":"#/$defs/schemas"}]}`
	}
	return `{"$defs":{` + metaDefs + `},"type":["object","boolean"],"properties":{"items":` + items + `,` + metaKeywords + `}}`
}

const metaDefs = `
	"schemas":{"type":"array","minItems":1,"items":{"$ref":"#"}},
	"named":{"type":"object","additionalProperties":{"$ref":"#"}},
	"names":{"type":"array","items":{"type":"string"},"uniqueItems":true},
	"count":{"type":"integer","minimum":0},
	"type":{"enum":["array","boolean","integer","null","number","object","string"]}`

const metaKeywords = `
	"$schema":{"type":"string"},
	"$id":{"type":"string"},
	"$ref":{"type":"string"},
	"$anchor":{"type":"string","pattern":"^[A-Za-z_][-A-Za-z0-9._]*$"},
	"$comment":{"type":"string"},
	"$defs":{"$ref":"#/$defs/named"},
	"definitions":{"$ref":"#/$defs/named"},

	"title":{"type":"string"},
	"description":{"type":"string"},
	"deprecated":{"type":"boolean"},
	"readOnly":{"type":"boolean"},
	"writeOnly":{"type":"boolean"},
	"examples":{"type":"array"},
	"format":{"type":"string"},
	"contentEncoding":{"type":"string"},
	"contentMediaType":{"type":"string"},
	"contentSchema":{"$ref":"#"},

	"type":{"anyOf":[
		{"type":"string","$ref":"#/$defs/type"},
		{"type":"array","items":{"$ref":"#/$defs/type"},"minItems":1,"uniqueItems":true}]},
	"enum":{"type":"array"},
	"multipleOf":{"type":"number","exclusiveMinimum":0},
	"minimum":{"type":"number"},
	"maximum":{"type":"number"},
	"exclusiveMinimum":{"type":"number"},
	"exclusiveMaximum":{"type":"number"},
	"minLength":{"$ref":"#/$defs/count"},
	"maxLength":{"$ref":"#/$defs/count"},
	"pattern":{"type":"string"},

	"prefixItems":{"$ref":"#/$defs/schemas"},
	"additionalItems":{"$ref":"#"},
	"unevaluatedItems":{"$ref":"#"},
	"contains":{"$ref":"#"},
	"minContains":{"$ref":"#/$defs/count"},
	"maxContains":{"$ref":"#/$defs/count"},
	"minItems":{"$ref":"#/$defs/count"},
	"maxItems":{"$ref":"#/$defs/count"},
	"uniqueItems":{"type":"boolean"},

	"properties":{"$ref":"#/$defs/named"},
	"patternProperties":{"$ref":"#/$defs/named"},
	"additionalProperties":{"$ref":"#"},
	"unevaluatedProperties":{"$ref":"#"},
	"propertyNames":{"$ref":"#"},
	"required":{"$ref":"#/$defs/names"},
	"minProperties":{"$ref":"#/$defs/count"},
	"maxProperties":{"$ref":"#/$defs/count"},
	"dependentRequired":{"type":"object","additionalProperties":{"$ref":"#/$defs/names"}},
	"dependentSchemas":{"$ref":"#/$defs/named"},
	"dependencies":{"type":"object","additionalProperties":{"anyOf":[{"$ref":"#/$defs/names"},{"$ref":"#"}]}},

	"allOf":{"$ref":"#/$defs/schemas"},
	"anyOf":{"$ref":"#/$defs/schemas"},
	"oneOf":{"$ref":"#/$defs/schemas"},
	"not":{"$ref":"#"},
	"if":{"$ref":"#"},
	"then":{"$ref":"#"},
	"else":{"$ref":"#"}`
