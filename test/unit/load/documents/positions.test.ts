import { describe, expect, test } from 'vitest'
import { parseDocuments, renderProblem } from '../../../../src/load/index.ts'

const check = (text: string): string[] => parseDocuments([{ path: 'a.yaml', text }]).problems.map(renderProblem)

describe('every problem has its place', () => {
  test('values at their value, unknown fields at their key, missing ones at what should hold them', () => {
    expect(
      check(`# first line
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata:
  name: Bad_Name
spec:
  type: headerInjection
  headerInjection:
    headerNam: X-Api-Key
    valueSecretRef: { name: a, key: 5 }
`),
    ).toEqual([
      'a.yaml:5:9  MCPExternalAuthConfig/Bad_Name  metadata.name  expected lower-case letters, digits, "-" and "."',
      'a.yaml:8:3  MCPExternalAuthConfig/Bad_Name  spec.headerInjection.headerName  missing, expected text',
      'a.yaml:9:5  MCPExternalAuthConfig/Bad_Name  spec.headerInjection.headerNam  unknown field "headerNam", did you mean "headerName"?',
      'a.yaml:10:37  MCPExternalAuthConfig/Bad_Name  spec.headerInjection.valueSecretRef.key  expected text, found a number; put it in quotes',
    ])
  })

  test('in each of several documents of one run', () => {
    const problems = check(`apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: one }
spec: { type: bearerTokn }
---
apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: two }
spec: { type: unauthenticated, upstreamInject: {} }
--- # JSON is YAML
{
	"apiVersion": "extauth.dev/v1alpha1",
	"kind": "MCPExternalAuthConfig",
	"metadata": { "name": "three" },
	"spec": null
}
`)
    expect(problems).toEqual([
      'a.yaml:4:15  MCPExternalAuthConfig/one  spec.type  "bearerTokn" is not known, did you mean "bearerToken"?',
      'a.yaml:9:32  MCPExternalAuthConfig/two  spec.upstreamInject.providerName  missing, expected text',
      'a.yaml:9:32  MCPExternalAuthConfig/two  spec.upstreamInject  "upstreamInject" must be absent when type is "unauthenticated"',
      'a.yaml:15:2  MCPExternalAuthConfig/three  spec  empty, expected an object',
    ])
  })

  test('behind an alias, at the anchor', () => {
    expect(
      check(`apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: one, annotations: { x: &key "a/b" } }
spec:
  type: bearerToken
  bearerToken: { tokenSecretRef: { name: a, key: *key } }
`),
    ).toEqual([expect.stringMatching(/^a\.yaml:6:50 .*tokenSecretRef\.key {2}expected letters, digits/)])
  })

  test('of a matcher, with the place inside of the expression', () => {
    expect(
      check(`apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: one }
spec:
  type: cloudSts
  cloudSts:
    region: eu-central-1
    roleMappings:
      - roleArn: arn:aws:iam::123456789012:role/a
        matcher: 'claims.dept == "x" && dept == "y"'
`),
    ).toEqual([
      expect.stringMatching(/^a\.yaml:10:18 .*roleMappings\[0\]\.matcher {2}line 1, column 23 of the expression/),
    ])
  })

  test('no problem quotes a value, which may be a secret instead of a reference', () => {
    const problems = check(`apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata: { name: one }
spec:
  type: bearerToken
  bearerToken: { tokenSecretRef: hunter2-hunter2, token: hunter2-hunter2 }
`)
    expect(problems).toHaveLength(2)
    expect(problems.join()).not.toContain('hunter2')
  })
})

test.each([
  'a: "b" hunter2',
  'a: [b] hunter2',
  "a: 'b' hunter2: c",
  '"hunter2',
  'a: b\nhunter2',
  'a: @hunter2',
  'a: "\\qhunter2"',
  '- a\nhunter2: b',
  '%hunter2\n---\na: b',
  'a: b\n] hunter2',
  'a: |hunter2\n b',
  'a: !hunter2',
  'a: *hunter2',
])('the text around a syntax error is not quoted: %j', (text) => {
  const problems = check(text)
  expect(problems.length).toBeGreaterThan(0)
  expect(problems.join()).not.toContain('hunter2')
})

describe('texts that are no documents', () => {
  test.each([
    ['a tab as indentation', 'a:\n\tb: 1', 'a.yaml:2:1  tabs are not allowed as indentation'],
    ['a duplicate key', 'a: 1\nb:\n  c: 1\n  c: 2', 'a.yaml:4:3  duplicate key "c"'],
    ['a duplicate key in JSON', '{"a": 1, "a": 2}', 'a.yaml:1:10  duplicate key "a"'],
    ['an unclosed quote', 'a: "b', 'a.yaml:1:6  missing closing "quote'],
    ['an unclosed list', 'a: [1', 'a.yaml:1:6'],
    ['an unknown tag', 'a: !secret b', 'a.yaml:1:4  unresolved tag'],
    ['an alias without anchor', 'a: *b', 'a.yaml:1:4  an alias that has no anchor before it'],
    ['an alias in itself', 'a: &a\n  b: *a', 'a.yaml:2:6  an alias inside its own anchor'],
    ['a control character', 'a: b\nc: \u0007', 'a.yaml:2:4  a control character, expected text'],
    ['a list', '- a', 'a.yaml:1:1  expected a document with "apiVersion" and "kind"'],
    ['a key that is a list', '? [a]\n: b', 'a.yaml:1:3  a key that is not a string'],
    ['__proto__', '{"__proto__": {"apiVersion": "x"}}', 'a.yaml:1:2  unknown field "__proto__"'],
  ])('%s', (_name, text, problem) => {
    expect(check(text).join('\n')).toContain(problem)
  })

  test('a number instead of a duration is reported with an example', () => {
    const spec =
      'auth: {mode: anonymous}, routes: [{name: a, path: /a, target: "https://b.example", externalAuthConfigRef: {name: c}, timeouts: {idle: 60}}]'
    const text = `apiVersion: extauth.dev/v1alpha1\nkind: ProxyConfig\nmetadata: {name: p}\nspec: {${spec}}`
    expect(check(text)).toContainEqual(
      expect.stringMatching(
        /timeouts\.idle {2}expected a Go duration such as "5s" .*, found a whole number \(route "a"\)$/,
      ),
    )
  })

  test('a tab is reported once, without consequential errors', () => {
    expect(check('a:\n  - b: 1\n\tc: 2\n    d: 3\n')).toEqual(['a.yaml:3:1  tabs are not allowed as indentation'])
  })

  test.each(['', '\n', '# nothing', '---\n---\n', '---\n...\n', '\uFEFF# nothing'])(
    '%j holds nothing, which is fine',
    (text) => {
      expect(check(text)).toEqual([])
    },
  )
})
