/** A document whose `spec` is written in some way of YAML. */
export interface Spelling {
  readonly what: string
  readonly text: string
}

const HEAD = 'apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata:\n  name: example\n'
const at = (indent: string, text: string): string =>
  text
    .split('\n')
    .map((line) => (line === '' ? '' : indent + line))
    .join('\n')
const spec = (what: string, text: string): Spelling => ({ what, text: `${HEAD}spec:\n${at('  ', text)}\n` })
const whole = (what: string, text: string): Spelling => ({ what, text })

const header = (what: string, name: string): Spelling =>
  spec(
    `a header called ${what}`,
    `type: headerInjection\nheaderInjection:\n  headerName: ${name}\n  valueSecretRef: {name: a, key: b}`,
  )
const key = (what: string, written: string): Spelling =>
  spec(`a key called ${what}`, `type: bearerToken\nbearerToken: {tokenSecretRef: {name: a, key: ${written}}}`)
const seconds = (what: string, written: string): Spelling =>
  spec(
    `seconds written ${what}`,
    `type: cloudSts\ncloudSts:\n  region: eu-central-1\n  fallbackRoleArn: arn:aws:iam::123456789012:role/a\n  sessionDuration: ${written}`,
  )
const flag = (what: string, written: string): Spelling =>
  spec(
    `a flag written ${what}`,
    `type: tokenExchange\ntokenExchange:\n  tokenUrl: https://idp.example.com/t\n  audience: a\n  insecureAllowHttp: ${written}`,
  )
const text = (what: string, written: string): Spelling =>
  spec(
    `a text ${what}`,
    `type: tokenExchange\ntokenExchange:\n  tokenUrl: https://idp.example.com/t\n  audience: ${written}`,
  )

// Plain scalars that YAML 1.1, which kubectl reads, does not parse as strings.
// prettier-ignore
const WORDS = ['on', 'off', 'yes', 'no', 'y', 'n', 'Y', 'N', 'On', 'OFF', 'Yes', 'NO', 'true', 'True', 'TRUE', 'false', 'null', 'Null', '~', '""', "''"]
// prettier-ignore
const NUMBERS = ['1', '007', '0o17', '010', '08', '0x1F', '0b101', '3_600', '+5', '-5', '1.0', '1e3', '1E3', '.5', '5.', '1_000.5', '.inf', '-.Inf', '.nan', '12:30', '190:20:30', '0.0', '1e400', '99999999999999999999', '0x']
const DATES = ['2026-01-31', '2026-01-31T12:00:00Z', '2026-01-31 12:00:00']
// prettier-ignore
const MARKED = ['!!str 7', '!!int "7"', '!!bool "yes"', '!!binary aGk=', '!own x', '&a b', '*nobody', '|', '>-', '"a\\u00e9"', "'it''s'", '"\\x41"', '@at', '`tick', '%a', 'a: b', 'a #b', 'a#b', '"a\\\n    b"']

/** Spellings of a document that files and kubectl must parse alike, or that are reported. */
// prettier-ignore
export const SPELLINGS: readonly Spelling[] = [
  ...WORDS.flatMap((word) => [header(word, word), key(word, word)]),
  ...NUMBERS.flatMap((number) => [key(number, number), seconds(number, number)]),
  ...['on', 'yes', 'y', 'True', 'TRUE', '"true"', '1'].map((word) => flag(word, word)),
  ...[...DATES, ...MARKED].map((written) => text(written, written)),
  ...['3600', '"3600"', '3600.0', '3.6e3', '0xE10', '07020', '1:00:00'].map((written) => seconds(written, written)),
  spec('the same key twice', 'type: unauthenticated\ntype: unauthenticated'),
  spec('keys that are words', 'type: unauthenticated\non: 1'),
  spec('keys that are numbers', 'type: unauthenticated\n1: 1'),
  spec('a key that is null', 'type: unauthenticated\n~: 1'),
  spec('a key that is a list', 'type: unauthenticated\n? [a]\n: 1'),
  spec('an explicit key', '? type\n: unauthenticated'),
  spec('nulls for what is optional', 'type: unauthenticated\nbearerToken: null\ncloudSts: ~\ntokenExchange:'),
  spec('a flow map', '{type: bearerToken, bearerToken: {tokenSecretRef: {name: a, key: b}}}'),
  spec('a flow map with a comma at its end', '{type: unauthenticated, }'),
  spec('JSON in it', '{"type":"unauthenticated"}'),
  spec('JSON without spaces and quotes', '{"type":unauthenticated}'),
  spec('a merge key', 'type: bearerToken\nbearerToken:\n  tokenSecretRef:\n    <<: {name: a}\n    key: b'),
  spec('a merge of two', 'type: bearerToken\nbearerToken:\n  tokenSecretRef:\n    <<: [{name: a}, {name: z, key: b}]'),
  spec('a merge key that is beaten', 'type: bearerToken\nbearerToken:\n  tokenSecretRef:\n    name: a\n    <<: {name: z, key: b}'),
  spec('an anchor', 'type: embeddedAuthServer\nembeddedAuthServer:\n  issuer: https://a.example.com\n  upstreamProviders:\n  - {name: a, type: oidc, oidcConfig: {issuerUrl: https://i, clientId: &c x, clientSecretRef: &s {name: a, key: b}}}\n  hmacSecretRefs: [*s]\n  forwardClaims: [*c]'),
  spec('a list at the level of its key', 'type: tokenExchange\ntokenExchange:\n  tokenUrl: https://a\n  audience: a\n  scopes:\n  - a\n  - b'),
  spec('a folded text', 'type: tokenExchange\ntokenExchange:\n  tokenUrl: https://a\n  audience: >-\n    a\n    b'),
  spec('a text of lines', 'type: tokenExchange\ntokenExchange:\n  tokenUrl: https://a\n  audience: |\n    a\n    b'),
  spec('a plain text over lines', 'type: tokenExchange\ntokenExchange:\n  tokenUrl: https://a\n  audience: a\n    b'),
  spec('a tab between', 'type:\tunauthenticated'),
  spec('a tab before', '\ttype: unauthenticated'),
  spec('no space behind the colon', 'type:unauthenticated'),
  spec('a comment', 'type: unauthenticated # as it is'),
  spec('capitals', 'Type: unauthenticated'),
  whole('a byte order mark', `\uFEFF${HEAD}spec: {type: unauthenticated}\n`),
  whole('line breaks of Windows', `${HEAD}spec: {type: unauthenticated}\n`.replaceAll('\n', '\r\n')),
  whole('a document marker', `---\n${HEAD}spec: {type: unauthenticated}\n`),
  whole('a document end', `${HEAD}spec: {type: unauthenticated}\n...\n`),
  whole('a directive', `%YAML 1.1\n---\n${HEAD}spec: {type: unauthenticated}\n`),
  whole('a comment first', `# ours\n${HEAD}spec: {type: unauthenticated}\n`),
  whole('JSON', JSON.stringify({ apiVersion: 'extauth.dev/v1alpha1', kind: 'MCPExternalAuthConfig', metadata: { name: 'example' }, spec: { type: 'unauthenticated' } })),
  whole('a text in JSON with an escape', '{"apiVersion":"extauth.dev/v1alpha1","kind":"MCPExternalAuthConfig","metadata":{"name":"ex\\u0061mple"},"spec":{"type":"unauthenticated"}}'),
  whole('labels that are numbers', `${HEAD}  labels: {a: 1}\nspec: {type: unauthenticated}\n`),
  whole('labels that are words', `${HEAD}  labels: {a: on}\nspec: {type: unauthenticated}\n`),
  whole('labels with a key that is a word', `${HEAD}  labels: {on: a}\nspec: {type: unauthenticated}\n`),
  whole('a name that is a number', `${HEAD.replace('example', '7')}spec: {type: unauthenticated}\n`),
  whole('no spec', HEAD),
  whole('an empty spec', `${HEAD}spec:\n`),
]
