import { describe, expect, test } from 'vitest'
import { parseDocuments, renderProblem } from '../../../../src/load/index.ts'

const load = (text: string) => parseDocuments([{ path: 'a.yaml', text }])

/** Warnings for an annotation with this value; the path is the same for all. */
const said = (scalar: string): string[] =>
  load(
    `apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata:\n  name: a\n  annotations:\n    k: ${scalar}\nspec: { type: unauthenticated }\n`,
  ).warnings.map(renderProblem)

describe('a plain scalar that kubectl reads otherwise', () => {
  // The value in kubectl 1.32, as `kubectl annotate --local -o json` shows.
  test.each<readonly [string, boolean | number]>([
    ...['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'].map((word) => [word, true] as const),
    ...['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF'].map((word) => [word, false] as const),
    ['007020', 3600],
    ['-010', -8],
    ['3_600', 3600],
    ['-1_0', -10],
    ['12_', 12],
    ['0_7', 7],
    ['1_000.5', 1000.5],
    ['1_0e2', 1000],
    ['.5_0', 0.5],
    ['+_7', 7],
    ['0b-11', -3],
    ['0x1_F', 31],
    ['+0x1f', 31],
    ['0X1F', 31],
    ['0b11', 3],
    ['-0b11', -3],
    ['1_000_000_000_000_000_000_000', 1e21],
  ])('%s is %s there: a warning with the quoted form', (scalar, theirs) => {
    expect(said(scalar)).toEqual([
      expect.stringMatching(/^a\.yaml:6:8 {2}MCPExternalAuthConfig\/a {2}metadata\.annotations\.k {2}/),
    ])
    expect(said(scalar)[0]).toContain(`${scalar} is ${theirs} to kubectl`)
    expect(said(scalar)[0]).toContain(`write "${scalar}" in quotes if text is meant, else ${theirs}`)
  })

  test.each([
    '"on"',
    "'no'",
    '!!str on',
    '|\n      on',
    '>-\n      on',
    'yES',
    'oN',
    'true',
    'False',
    'TRUE',
    '~',
    'null',
    'NULL',
    '7',
    '0',
    '-1',
    '+12',
    '08',
    '018',
    '09.5',
    '1.',
    '.5',
    '1e3',
    '0x1f',
    '0o17',
    '_12',
    '.5_',
    '0o19',
    '0xg',
    '"0b11"',
    '1:30',
    '190:20:30',
    '2001-12-14',
    '2025-11-25',
    '10.0.0.1:8080',
    'one_two',
    'https://a_b.example.com',
    '0b12',
  ])('%s is the same there', (scalar) => {
    expect(said(scalar)).toEqual([])
  })

  test('a number that no float can hold is text there', () => {
    expect(said('1e871')[0]).toContain(
      '1e871 is the text "1e871" to kubectl and all that read YAML 1.1, and Infinity here; write "1e871" in quotes if text is meant',
    )
  })

  test('keys are looked at, too, and each once however often it is used', () => {
    const { warnings } = load(`apiVersion: extauth.dev/v1alpha1
kind: MCPExternalAuthConfig
metadata:
  name: a
  labels: &l { on: x, v: no }
  annotations: *l
spec: { type: unauthenticated }
`)
    expect(warnings.map(({ line, column, path }) => `${line}:${column} ${path}`)).toEqual([
      '5:16 metadata.labels.on',
      '5:26 metadata.labels.v',
    ])
  })

  test('only in supported documents', () => {
    const other = 'apiVersion: v1\nkind: Pod\nspec: { a: on }\n'
    expect(load(other).warnings).toEqual([])
    const list = `apiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: Pod, spec: { a: on } }\n- { apiVersion: extauth.dev/v1alpha1, kind: MCPServer, metadata: { name: a }, spec: { image: on } }\n`
    expect(load(list).warnings.map(({ line, kind, path }) => `${line} ${kind} ${path}`)).toEqual([
      '5 MCPServer items[1].spec.image',
    ])
  })

  test('in auth sections, registry files and ConfigMaps as well', () => {
    const registry = 'auth: { mode: anonymous }\nregistries: [{ name: no, source: { file: a.json } }]\n'
    const auth = 'auth:\n  oauth: { resourceUrl: "https://a", realm: off, providers: [] }\n'
    const map = `apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n${registry.replace(/^(?=.)/gm, '    ')}`
    expect(load(registry).warnings.map(({ line, column }) => `${line}:${column}`)).toEqual(['2:22'])
    expect(load(auth).warnings.map(({ line, column }) => `${line}:${column}`)).toEqual(['2:45'])
    expect(load(map).warnings.map(({ line, column }) => `${line}:${column}`)).toEqual(['6:26'])
  })
})

describe('merge keys', () => {
  const spec = (text: string) => {
    const loaded = load(
      `apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata:\n  name: a\n  annotations:\n    x: &no-object text\n${text}`,
    )
    return {
      spec: loaded.auths[0]?.document.spec,
      problems: loaded.problems.map(renderProblem),
      warnings: loaded.warnings,
    }
  }
  const header = (name: string) => ({
    type: 'headerInjection',
    headerInjection: { headerName: name, valueSecretRef: { name: 's', key: 'k' } },
  })

  test.each([
    ['one object', '{ <<: *base, headerName: X-Mine }', 'X-Mine'],
    ['that is taken as it is', '{ <<: *base }', 'X-Base'],
    ['the first of several', '{ <<: [{ headerName: X-First }, *base] }', 'X-First'],
    ['an object in place', '{ <<: { headerName: X-Here, valueSecretRef: { name: s, key: k } } }', 'X-Here'],
    ['what it has merged itself', '{ <<: { <<: *base } }', 'X-Base'],
  ])('%s', (_name, written, expected) => {
    const loaded = load(
      `apiVersion: v1\nkind: List\nitems:\n- { base: &base { headerName: X-Base, valueSecretRef: { name: s, key: k } } }\n- apiVersion: extauth.dev/v1alpha1\n  kind: MCPExternalAuthConfig\n  metadata: { name: a }\n  spec: { type: headerInjection, headerInjection: ${written} }\n`,
    )
    expect(loaded.problems.map(renderProblem).filter((line) => !line.includes('items[0]'))).toEqual([])
    expect(loaded.auths.at(-1)?.document.spec).toEqual(header(expected))
    expect(loaded.warnings).toEqual([])
  })

  test('a problem with a merged value is reported where it is written', () => {
    const { problems } = load(
      `apiVersion: v1\nkind: List\nitems:\n- apiVersion: extauth.dev/v1alpha1\n  kind: MCPExternalAuthConfig\n  metadata: { name: a }\n  spec:\n    type: headerInjection\n    headerInjection: { <<: { headerName: Host, valueSecretRef: { name: s, key: k } } }\n`,
    )
    expect(problems.map(({ line, column }) => `${line}:${column}`)).toEqual(['9:42'])
  })

  test.each([
    ['{ <<: *no-object }', /expected an alias of an object/],
    ['{ <<: [1] }', /expected an alias of an object/],
    ['{ <<: {}, <<: {} }', /duplicate key "<<", expected one with a list/],
    ['{ "<<": {} }', /unknown field "<<"/],
    ['&self { <<: *self }', /an alias inside its own anchor/],
  ])('%s is a problem', (written, expected) => {
    expect(spec(`spec: { type: headerInjection, headerInjection: ${written} }\n`).problems.join('\n')).toMatch(expected)
  })

  test('a key before "<<" is what kubectl does not see: a warning', () => {
    const { spec: found, warnings } = spec(
      'spec: { type: headerInjection, headerInjection: { headerName: X-Mine, <<: { headerName: X-Base, valueSecretRef: { name: s, key: k } } } }\n',
    )
    expect(found).toEqual(header('X-Mine'))
    expect(warnings.map(({ column, path, message }) => `${column} ${path} ${message}`)).toEqual([
      '71 spec.headerInjection.headerName kubectl takes "headerName" from "<<", which follows it, and here it is what is written; put "<<" first',
    ])
  })
})
