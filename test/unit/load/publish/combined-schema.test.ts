import { describe, expect, it } from 'vitest'
import { combinedSchema, JSON_SCHEMA_NAMES } from '../../../../src/load/publish/index.ts'
import { SPECS } from '../../../support/load/documents/build.ts'
import { EMBEDDED_EXAMPLES } from '../../../support/resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../../support/resources/examples-outgoing.ts'
import { createAjv, document, jsonSchemaAccepts, problemsOf } from '../../../support/load/publish/validators.ts'

const validate = createAjv().compile(combinedSchema())
const accepts = (value: unknown): boolean => validate(value)

const EXTERNAL_AUTH = document({ type: 'unauthenticated' })
const WRONG = document({ type: 'unauthenticatd' })
const REMOTE = document({ remoteUrl: 'https://x.example/mcp' }, 'MCPRemoteProxy')
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: {}, spec: { anything: 1 } }
const ANONYMOUS = { mode: 'anonymous' }
const REGISTRIES = [{ name: 'default', source: { file: 'a.json' } }]
const listOf = (...items: unknown[]) => ({ apiVersion: 'v1', kind: 'List', items })

describe('the combined JSON Schema', () => {
  it('holds all the others', () => {
    const { $defs } = combinedSchema() as { $defs: Record<string, unknown> }
    expect(Object.keys($defs)).toEqual(JSON_SCHEMA_NAMES)
  })

  it('says of every example what the schema of its kind says', () => {
    const documents = [...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES].map(({ spec }) =>
      JSON.parse(JSON.stringify(document(spec))),
    ) as unknown[]
    const verdicts = documents.map(accepts)
    expect(verdicts).toEqual(documents.map((one) => jsonSchemaAccepts('MCPExternalAuthConfig', one)))
    expect(new Set(verdicts)).toEqual(new Set([true, false]))
  })

  it.each(Object.entries(SPECS))('takes a config of type %s', (_type, spec) => {
    expect(accepts(document(spec))).toBe(true)
  })

  it.each<[string, unknown, boolean]>([
    ['an MCPExternalAuthConfig', EXTERNAL_AUTH, true],
    ['a wrong one', WRONG, false],
    ['a ProxyConfig with an unknown field', document({ routs: [] }, 'ProxyConfig'), false],
    ['an MCPRemoteProxy', REMOTE, true],
    ['an MCPRemoteProxy without a URL', document({ remoteUrl: 'nowhere' }, 'MCPRemoteProxy'), false],
    ['an MCPServerEntry', document({ remoteUrl: 'https://x.example/mcp' }, 'MCPServerEntry'), true],
    ['an MCPServerEntry without a URL', document({}, 'MCPServerEntry'), false],
    ['an MCPServer', document({ transport: 'stdio' }, 'MCPServer'), true],
    ['an MCPServer with half a reference', document({ externalAuthConfigRef: {} }, 'MCPServer'), false],
    [
      'a VirtualMCPServer whose outgoingAuth is none',
      document({ outgoingAuth: { default: 1 } }, 'VirtualMCPServer'),
      false,
    ],
    ['a misspelled kind of the project', { ...EXTERNAL_AUTH, kind: 'MCPExternalAuth' }, false],
    ['a document of the project without kind', { apiVersion: 'extauth.dev/v1alpha1', metadata: {}, spec: {} }, false],
    ['a list', listOf(EXTERNAL_AUTH, DEPLOYMENT), true],
    ['a list with a wrong one', listOf(EXTERNAL_AUTH, WRONG), false],
    [
      'a list of one kind',
      { ...listOf(EXTERNAL_AUTH), apiVersion: 'extauth.dev/v1alpha1', kind: 'ProxyConfigList' },
      true,
    ],
    ['a registry file', { auth: ANONYMOUS, registries: REGISTRIES }, true],
    ['a registry file without a source', { auth: ANONYMOUS, registries: [{ name: 'default' }] }, false],
    ['a registry file with an unknown field', { auth: ANONYMOUS, registris: REGISTRIES }, false],
    ['an auth section', { auth: ANONYMOUS }, true],
    ['a wrong auth section', { auth: { mode: 'anonymus' } }, false],
    ['a foreign document', DEPLOYMENT, true],
    ['a document of another group', { ...WRONG, apiVersion: 'other.example/v1', kind: 'Anything' }, true],
  ])('validates %s', (_what, value, expected) => {
    expect(accepts(value)).toBe(expected)
    // Files are validated alike.
    expect(problemsOf(value).length === 0).toBe(expected)
  })
})
