import { expect, test } from 'vitest'
import { parseDocuments, resolveProxy } from '../../../../src/load/index.ts'

const entry = (name: string): string =>
  `apiVersion: extauth.dev/v1beta1\nkind: MCPServerEntry\nmetadata: { name: ${name} }\nspec: { remoteUrl: 'https://${name}.example.com/mcp' }\n`
const virtual = (name: string, members: readonly string[], spec = '{}'): string =>
  `apiVersion: extauth.dev/v1beta1\nkind: VirtualMCPServer\nmetadata: { name: ${name} }\nspec: ${spec}\n` +
  (members.length === 0
    ? ''
    : `status: { discoveredBackends: [${members.map((one) => `{ name: ${one}, url: 'https://${one}.example.com/mcp' }`).join(', ')}] }\n`)
const resolved = (...documents: readonly string[]) =>
  resolveProxy(parseDocuments([{ path: 'a.yaml', text: documents.join('---\n') }]))
const routesOf = (...documents: readonly string[]) => {
  const { config, problems } = resolved(...documents)
  expect(problems).toBeUndefined()
  return config?.routes.map(({ name, path, resourceUrl }) => [name, path, resourceUrl].join(' ').trim())
}

test('a backend beside the member that it was discovered from gets the name of the server before its own', () => {
  const spec = "{ resourceUrl: 'https://tools.example.com/mcp' }"
  expect(routesOf(entry('docs'), virtual('all', ['docs', 'wiki'], spec))).toEqual([
    'docs /docs',
    'all-docs /all-docs https://tools.example.com/mcp/all-docs',
    'wiki /wiki https://tools.example.com/mcp/wiki',
  ])
})

test('two servers over one group have routes of their own', () => {
  expect(routesOf(virtual('a', ['docs']), virtual('b', ['docs', 'wiki']))).toEqual([
    'a-docs /a-docs',
    'b-docs /b-docs',
    'wiki /wiki',
  ])
})

test('routeNames names routes, and one that another route has is refused', () => {
  const names = '{ routeNames: { docs: handbook } }'
  expect(routesOf(virtual('a', ['docs'], names), virtual('b', ['docs']))).toEqual(['handbook /handbook', 'docs /docs'])
  const { problems = [] } = resolved(entry('handbook'), virtual('a', ['docs'], names))
  expect(problems.map(({ message }) => message)).toContainEqual(expect.stringContaining('has the name "handbook"'))
})

test.each([
  ['policies', '{ incomingAuth: { authzConfigRef: { name: few } } }', 'spec.incomingAuth.authzConfigRef'],
  [
    'tools that are hidden',
    '{ config: { aggregation: { excludeAllTools: true } } }',
    'spec.config.aggregation.excludeAllTools',
  ],
])('%s are refused before there is a backend', (_what, spec, path) => {
  const { problems = [] } = resolved(entry('docs'), virtual('all', [], spec))
  expect(problems.map((problem) => problem.path)).toEqual([path])
})
