import { describe, expect, test } from 'vitest'
import { parseDocuments, parseObjects } from '../../../../src/load/index.ts'
import { objectBudget, YAML_LIMITS } from '../../../../src/load/yaml/yaml-limits.ts'

const full = YAML_LIMITS.bytes - 1_000
const fill = (part: string): string => part.repeat(Math.floor(full / part.length))
const header = { apiVersion: 'extauth.dev/v1alpha1', kind: 'MCPExternalAuthConfig', metadata: { name: 'a' } }
const letters = 'abcdefghij'

const laughs = [
  'a: &a [x,x,x,x,x,x,x,x,x,x]',
  ...Array.from(
    { length: 9 },
    (_, i) => `${letters[i + 1]}: &${letters[i + 1]} [${Array(10).fill(`*${letters[i]}`).join(',')}]`,
  ),
].join('\n')

// Texts that cost a careless reader exponential or quadratic time, or its stack. Each is rejected with the reason.
// prettier-ignore
const BOMBS: readonly (readonly [string, string, RegExp])[] = [
  ['aliases that multiply', laughs, /too many values/],
  ['nested lists', fill('['), /nested too deeply/],
  ['nested objects', fill('{a: '), /nested too deeply/],
  ['nested block lists', fill('- '), /nested too deeply/],
  ['nested block maps', Array.from({ length: 2_000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), /nested too deeply/],
  ['nested explicit keys', fill('? '), /nested too deeply/],
  ['nested pairs', fill('[? '), /nested too deeply/],
  ['many keys and anchors', Array.from({ length: 120_000 }, (_, i) => `k${i}: &a${i} x`).join('\n'), /too many tokens/],
  ['many documents', fill('--- a\n'), /more than 20000 documents/],
  ['many tags', '!a '.repeat(600_000), /too many tokens: 1200\d\d\d in one file, expected at most 1000000; split it/],
  ['quotes that never close', fill('"\n'), /./],
  ['braces', fill('{}'), /more than 1000 tokens that are out of place/],
  ['closing braces', fill('}'), /more than 1000 tokens that are out of place/],
  ['directives', fill('%a\n'), /more than 1000 tokens that are out of place/],
  ['merge keys that multiply', `${laughs.replaceAll('a: &a [x,x,x,x,x,x,x,x,x,x]', 'a: &a {x: 1}').replaceAll(/: &(\w) \[(.*)\]/g, ': &$1 {<<: [$2]}')}\nspec: 1`, /too many values/],
  ['a file that is too large', `a: ${'x'.repeat(YAML_LIMITS.bytes)}`, /too large: \d+ characters, expected at most 8388608 bytes/],
  ['a file of 11 MiB', '# x\n'.repeat(3 * 1024 * 1024), /too large/],
]

describe('hostile texts end in a clear error, in bounded time', () => {
  test.each(BOMBS)('%s', { timeout: 60_000 }, (_name, text, expected) => {
    const { problems } = parseDocuments([{ path: 'bomb.yaml', text }])
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.length).toBeLessThanOrEqual(YAML_LIMITS.problems * 2)
    expect(problems.map((problem) => problem.message).join('\n')).toMatch(expected)
  })

  test('an oversized text is reported once, not again for each text after it', () => {
    const { tokens } = objectBudget()
    const content = `# extauth.dev/\n[${'1,'.repeat(tokens / 10)}]`
    const data = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, content]))
    const { problems } = parseObjects([{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data }])
    expect(problems.map((problem) => problem.message)).toEqual([expect.stringMatching(/^too many tokens/)])
  })

  test('thousands of misspelled fields are counted, not all explained', () => {
    const fields = Array.from({ length: 30_000 }, (_, i) => `  typo${i}: 1`).join('\n')
    const text = `apiVersion: extauth.dev/v1alpha1\nkind: MCPExternalAuthConfig\nmetadata: {name: a}\nspec:\n  type: unauthenticated\n${fields}`
    const { problems } = parseDocuments([{ path: 'a.yaml', text }])
    expect(problems.length).toBeLessThanOrEqual(YAML_LIMITS.problems + 1)
    expect(problems.map((problem) => problem.message).join()).toContain('more than 1000 problems')
  })

  test('too many role mappings are refused before their matchers cost anything', () => {
    const roleMappings = Array.from({ length: 20_000 }, (_, i) => ({
      roleArn: 'arn:aws:iam::123456789012:role/a',
      matcher: `claims.a${i} == "x"`,
    }))
    const spec = { type: 'cloudSts', cloudSts: { region: 'eu-central-1', roleMappings } }
    const text = JSON.stringify({ ...header, spec })
    const { problems } = parseDocuments([{ path: 'a.json', text }])
    expect(problems.map((problem) => problem.message)).toEqual(['too long, expected at most 500 entries'])
  })

  test('names of Object.prototype are names like any other', () => {
    const text =
      'apiVersion: extauth.dev/v1alpha1\nkind: constructor\nmetadata: {name: toString}\nspec: {hasOwnProperty: 1}'
    const { problems } = parseDocuments([{ path: 'a.yaml', text }])
    expect(problems.map((problem) => problem.path)).toEqual(['kind'])
  })
})
