import { generateKeyPairSync, sign } from 'node:crypto'
import { CompactEncrypt, CompactSign, importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { createKey } from '../../upstreams/idp.ts'
import type { Rig } from '../rig.ts'

export interface Wrong {
  readonly name: string
  readonly make: (rig: Rig) => string | Promise<string>
  /** Logged reason. */
  readonly why: RegExp
}

/** Differences between the kinds of assertions. */
export interface Kind {
  /** `typ` of a right one. */
  readonly typ: string | undefined
  /** The claims of a right one. */
  readonly claims: (rig: Rig, more?: Readonly<Record<string, unknown>>) => Record<string, unknown>
  /** A right one but for claims and header. */
  readonly make: (
    rig: Rig,
    more?: Readonly<Record<string, unknown>>,
    header?: Readonly<Record<string, unknown>>,
  ) => Promise<string>
  /** Logged reason for another audience. */
  readonly aud: RegExp
}

const text = new TextEncoder()
const segment = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const now = (rig: Rig): number => Math.floor(rig.clock.now() / 1_000)

/** Rows for one kind. */
export const rowsOf = (kind: Kind) => ({
  /** With claims that are wrong. */
  claims: (name: string, why: RegExp, more: (rig: Rig) => Readonly<Record<string, unknown>>): Wrong => ({
    name,
    why,
    make: (rig) => kind.make(rig, more(rig)),
  }),
  /** With a header that is wrong, signed as it should be. */
  header: (name: string, why: RegExp, more: Readonly<Record<string, unknown>>): Wrong => ({
    name,
    why,
    make: (rig) => kind.make(rig, {}, more),
  }),
  /** Signed with something that is no key of the issuer, though its header says so. */
  forged: (name: string, alg: string, why: RegExp, key: (rig: Rig) => Uint8Array): Wrong => ({
    name,
    why,
    make: (rig) =>
      new SignJWT(kind.claims(rig))
        .setProtectedHeader({ alg, kid: rig.idp.key.jwk.kid ?? '', ...typed(kind) })
        .sign(key(rig)),
  }),
  /** A right one, cut up and put together another way. */
  pieces: (name: string, why: RegExp, change: (parts: [string, string, string], rig: Rig) => string): Wrong => ({
    name,
    why,
    make: async (rig) => change((await kind.make(rig)).split('.') as [string, string, string], rig),
  }),
})

const typed = ({ typ }: Kind) => (typ === undefined ? {} : { typ })

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const NO_JWT = /not a signed JWT/
const ISS = /^iss is not among/
const KEY = /no key of the provider fits|signature is wrong/

const publicText = ({ idp }: Rig): Uint8Array => text.encode(JSON.stringify(idp.key.jwk))

/** Assertions that differ from a right one in one thing, whatever their kind. */
export function wrongOf(kind: Kind): readonly Wrong[] {
  return [...wronglySaid(kind), ...wronglyMade(kind), ...wronglyPut(kind)]
}

function wronglySaid(kind: Kind): readonly Wrong[] {
  const { claims, header } = rowsOf(kind)
  return [
    claims('a foreign aud', kind.aud, () => ({ aud: 'https://other.example' })),
    claims('no aud', kind.aud, () => ({ aud: undefined })),
    claims('aud an array of two', kind.aud, (rig) => ({ aud: [rig.issuer, 'https://other.example'] })),
    claims('aud ours twice', kind.aud, (rig) => ({ aud: [rig.issuer, rig.issuer] })),
    claims('aud an empty array', kind.aud, () => ({ aud: [] })),
    claims('aud an array in an array', kind.aud, (rig) => ({ aud: [[rig.issuer]] })),
    claims('aud the resource', kind.aud, (rig) => ({ aud: `${rig.issuer}/mcp` })),
    claims('aud with a slash more', kind.aud, (rig) => ({ aud: `${rig.issuer}/` })),
    claims('aud in capitals', kind.aud, (rig) => ({ aud: rig.issuer.toUpperCase() })),
    claims('aud an object', kind.aud, (rig) => ({ aud: { [rig.issuer]: true } })),
    claims('an unlisted iss', ISS, () => ({ iss: 'https://idp.example.com' })),
    claims('iss ourselves', ISS, (rig) => ({ iss: rig.issuer })),
    claims('iss with a slash more', ISS, (rig) => ({ iss: `${rig.idp.url}/` })),
    claims('iss an array', ISS, (rig) => ({ iss: [rig.idp.url] })),
    claims('iss a name of objects', ISS, () => ({ iss: '__proto__' })),
    claims('no iss', ISS, () => ({ iss: undefined })),
    claims('exp in eleven minutes', /more than 10 minutes ahead/, (rig) => ({ exp: now(rig) + 660 })),
    claims('exp in a thousand years', /more than 10 minutes ahead/, () => ({ exp: 4e10 })),
    claims('exp that has passed', /^it has expired$/, (rig) => ({ exp: now(rig) - 6 })),
    claims('exp now less the tolerance', /^it has expired$/, (rig) => ({ exp: now(rig) - 5 })),
    claims('no exp', /^exp is not a number$/, () => ({ exp: undefined })),
    claims('exp as text', /^exp is not a number$/, (rig) => ({ exp: String(now(rig) + 300) })),
    claims('exp in milliseconds', /more than 10 minutes ahead/, (rig) => ({ exp: rig.clock.now() + 300_000 })),
    claims('nbf ahead', /^nbf is in the future$/, (rig) => ({ nbf: now(rig) + 31 })),
    claims('nbf as text', /^nbf is not a number$/, () => ({ nbf: '1' })),
    claims('no iat', /^iat is missing$/, () => ({ iat: undefined })),
    claims('iat ahead', /^iat is in the future$/, (rig) => ({ iat: now(rig) + 31 })),
    claims('iat as text', /^iat is not a number$/, () => ({ iat: '1' })),
    claims('an empty jti', /^jti is not a string/, () => ({ jti: '' })),
    claims('a jti that is a number', /^jti is not a string/, () => ({ jti: 7 })),
    claims('a jti that is too long', /^jti is not a string/, () => ({ jti: 'x'.repeat(1_025) })),
    claims('no sub', /^sub is not a string/, () => ({ sub: undefined })),
    claims('an empty sub', /^sub is not a string/, () => ({ sub: '' })),
    claims('a sub that is a number', /^sub is not a string/, () => ({ sub: 1 })),
    claims('a sub that is too long', /^sub is not a string/, () => ({ sub: 'x'.repeat(1_025) })),
    claims('a key that it is bound to', /^it is bound to a key/, () => ({ cnf: { jkt: 'x' } })),
    claims('rights finer than scopes', /^authorization_details/, () => ({ authorization_details: [{ type: 'x' }] })),
    claims('more than 16 KiB', /more than 16384 characters/, () => ({ pad: 'x'.repeat(13_000) })),
    header('an extension that has to be understood', /^crit names/, { crit: ['b64'], b64: true }),
    header('an unknown kid', KEY, { kid: 'unknown' }),
    header('another alg of the same key type', KEY, { alg: 'RS256', kid: 'x', jku: 'https://attacker.example/jwks' }),
  ]
}

function wronglyMade(kind: Kind): readonly Wrong[] {
  const { forged } = rowsOf(kind)
  return [
    { name: 'nothing in it', why: NO_JWT, make: () => 'x' },
    { name: 'only dots', why: NO_JWT, make: () => '..' },
    {
      name: 'alg none',
      why: /^alg is not accepted$/,
      make: (rig) => {
        const [, body] = new UnsecuredJWT(kind.claims(rig)).encode().split('.')
        return `${segment({ alg: 'none', ...typed(kind) })}.${body}.`
      },
    },
    forged('HS256 with the public key as secret', 'HS256', /^alg is not accepted$/, publicText),
    forged('HS512 with the public key as secret', 'HS512', /^alg is not accepted$/, publicText),
    {
      name: 'a foreign key under the kid of the issuer',
      why: KEY,
      make: async (rig) => {
        const key = await createKey('RS256', rig.idp.key.jwk.kid)
        return key.sign(kind.claims(rig), { ...typed(kind) })
      },
    },
    {
      name: 'a key in the header',
      why: KEY,
      make: async (rig) => {
        const key = await createKey('ES256', 'mine')
        return key.sign(kind.claims(rig), { ...typed(kind), jwk: key.jwk })
      },
    },
    {
      name: 'a key of another algorithm',
      why: KEY,
      make: (rig) => {
        const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
        const head = segment({ alg: 'ES256', kid: rig.idp.key.jwk.kid, ...typed(kind) })
        const signed = `${head}.${segment(kind.claims(rig))}`
        return `${signed}.${sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
      },
    },
    {
      name: 'nested: a JWT whose payload is the right one',
      why: NO_JWT,
      make: async (rig) => {
        const inner = await kind.make(rig)
        const key = (await createKey('ES256', 'mine')) as { jwk: { kid?: string } }
        const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
        return new CompactSign(text.encode(inner))
          .setProtectedHeader({ alg: 'ES256', kid: key.jwk.kid ?? '', ...typed(kind), cty: 'JWT' })
          .sign(privateKey)
      },
    },
    {
      name: 'encrypted for a key that we publish',
      why: NO_JWT,
      make: async (rig) =>
        new CompactEncrypt(text.encode(await kind.make(rig)))
          .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', ...typed(kind) })
          .encrypt(await importJWK({ ...rig.idp.key.jwk, use: 'enc', alg: 'RSA-OAEP-256' })),
    },
  ]
}

/** Cut up, and put together another way. */
function wronglyPut(kind: Kind): readonly Wrong[] {
  const { pieces } = rowsOf(kind)
  return [
    pieces('no signature', KEY, ([head, body]) => `${head}.${body}.`),
    pieces('half a signature', KEY, ([head, body, mac]) => `${head}.${body}.${mac.slice(0, 172)}`),
    pieces('a signature of another payload', KEY, ([head, , mac], rig) =>
      [head, segment(kind.claims(rig, { sub: 'admin' })), mac].join('.'),
    ),
    pieces('a fourth part', NO_JWT, (parts) => [...parts, 'x'].join('.')),
    pieces('padding', NO_JWT, ([head, body, mac]) => `${head}.${body}=.${mac}`),
    pieces('a blank at the end', NO_JWT, (parts) => `${parts.join('.')} `),
    pieces('nonzero padding bits in the signature', NO_JWT, ([head, body, mac]) => {
      const last = ALPHABET.indexOf(mac.slice(-1))
      return `${head}.${body}.${mac.slice(0, -1)}${ALPHABET[last + 1]}`
    }),
    pieces('kid twice in the header', NO_JWT, ([, body, mac], { idp }) => {
      const { kid = '' } = idp.key.jwk
      return [segment(`{"alg":"RS256","kid":"a","kid":"${kid}"}`), body, mac].join('.')
    }),
    pieces('sub twice', NO_JWT, ([head, , mac], rig) => {
      const body = JSON.stringify(kind.claims(rig)).replace('{', '{"sub":"other",')
      return [head, segment(body), mac].join('.')
    }),
    pieces('a payload that is an array', NO_JWT, ([head, , mac]) => [head, segment('[]'), mac].join('.')),
    pieces('a payload that is no UTF-8', NO_JWT, ([head, , mac]) =>
      [head, Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url'), mac].join('.'),
    ),
  ]
}
