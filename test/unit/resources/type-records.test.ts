import { describe, expect, it } from 'vitest'
import { AUTH_TYPES, TYPE_RECORDS } from '../../../src/resources/index.ts'
import { jsonSchema } from '../../../src/load/publish/index.ts'
import { parseDocuments } from '../../../src/load/index.ts'
import { typedSpec, type TypedSpec } from '../../../src/resources/auth-types.ts'
import { EMBEDDED_EXAMPLES } from '../../support/resources/examples-embedded.ts'
import { OUTGOING_EXAMPLES } from '../../support/resources/examples-outgoing.ts'
import { document } from '../../support/load/publish/validators.ts'

/** All specs of the examples that are valid. */
const SPECS = [...OUTGOING_EXAMPLES, ...EMBEDDED_EXAMPLES].flatMap(({ spec }) => {
  const [auth] = parseDocuments([{ path: 'a.json', text: JSON.stringify(document(spec)) }]).auths
  return auth === undefined ? [] : [typedSpec(auth.document.spec)]
})

/** Every `{name, key}` in a value, however it is called. */
function secretsIn(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if (Object.keys(value).sort().join() === 'key,name') return [value]
  return Object.values(value).flatMap(secretsIn)
}

const secretsOf = ({ type, spec }: TypedSpec) => TYPE_RECORDS[type].secrets(spec as never)
const filesOf = ({ type, spec }: TypedSpec) => TYPE_RECORDS[type].files(spec as never)

describe('the record of a type', () => {
  it('is there for each type, and each type has an example', () => {
    expect(Object.keys(TYPE_RECORDS).sort()).toEqual([...AUTH_TYPES].sort())
    expect([...new Set(SPECS.map(({ type }) => type))].sort()).toEqual([...AUTH_TYPES].sort())
  })

  it('knows every secret that a spec names', () => {
    const known = SPECS.map((typed) => ({ type: typed.type, secrets: secretsOf(typed).map(({ value }) => value) }))
    expect(known).toEqual(SPECS.map(({ type, spec }) => ({ type, secrets: secretsIn(spec) })))
  })

  it('says where a secret is named', () => {
    const full = {
      type: 'tokenExchange',
      tokenExchange: {
        tokenUrl: 'https://idp.example.com/t',
        audience: 'b',
        clientId: 'c',
        clientKeySecretRef: { name: 'keys', key: 'pem' },
        clientAuthMethod: 'private_key_jwt',
        caCertPath: 'ca.pem',
      },
    }
    const [auth] = parseDocuments([{ path: 'a.json', text: JSON.stringify(document(full)) }]).auths
    if (auth?.document.spec.type !== 'tokenExchange') throw new Error('not loaded')
    const { tokenExchange } = auth.document.spec
    expect(TYPE_RECORDS.tokenExchange.secrets(tokenExchange)).toEqual([
      { path: ['clientKeySecretRef'], value: { name: 'keys', key: 'pem' }, holds: 'client key' },
    ])
    expect(TYPE_RECORDS.tokenExchange.files(tokenExchange)).toEqual([
      { path: ['caCertPath'], value: 'ca.pem', holds: 'certificates' },
    ])
  })

  it('knows every field whose name says that it holds a secret or a file', () => {
    const schema = JSON.stringify(jsonSchema('MCPExternalAuthConfig'))
    const named = new Set([...schema.matchAll(/"(\w+(?:SecretRefs?|Path|File))":\{/g)].map(([, name]) => name))
    const found = new Set(
      SPECS.flatMap((typed) => secretsOf(typed).concat(filesOf(typed) as never)).flatMap(({ path }) => path),
    )
    // Paths inside of a token response are no files.
    const noFiles = /^(accessToken|expiresIn|refreshToken|scope|subject|name|email)Path$/
    expect([...named].filter((name) => name !== undefined && !noFiles.test(name) && !found.has(name))).toEqual([])
  })
})
