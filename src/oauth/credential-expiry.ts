import { X509Certificate } from 'node:crypto'
import type { EpochMs, SecretHandle } from '../core/index.ts'
import type { ClientAuth } from '../resources/index.ts'
import type { ClientDeps } from './open-client.ts'
import { shapeOf } from './token-shape.ts'

const DAY_MS = 86_400_000
/** Tokens that live less than ten days are normally renewed well before this last part of their lifetime. */
const LAST_PART = 0.1
/** For tokens with neither `iat` nor `nbf`, as JWT-SVIDs may be: short-lived, but of unknown lifetime. */
const LEAST_LEFT_MS = 60_000

/** A client credential with an expiry. */
export interface CredentialExpiry {
  readonly kind: 'certificate' | 'token'
  /** `NAME/KEY` of the secret, or the path of the file. */
  readonly label: string
  readonly endsAtMs: EpochMs
  /** When it should have been renewed: a day before expiry, or in the last tenth of a shorter lifetime. */
  readonly renewByMs: number
}

const END_OF = {
  certificate: (text: string) => {
    const { validFromDate, validToDate } = new X509Certificate(text)
    return [validFromDate.getTime(), validToDate.getTime()] as const
  },
  token: (text: string) => {
    const shape = shapeOf(text)
    const { iat, nbf, exp } = shape.kind === 'jwt' ? shape.jwt.payload : {}
    if (typeof exp !== 'number') throw new TypeError('a token without end')
    const begin = [iat, nbf].find((time) => typeof time === 'number')
    return [begin === undefined ? undefined : begin * 1_000, exp * 1_000] as const
  },
}

/** Expiries of a client's credentials; those that are missing, unreadable or without expiry are omitted. */
export function credentialExpiries(auth: ClientAuth | undefined, deps: Omit<ClientDeps, 'clock'>): CredentialExpiry[] {
  const ends: CredentialExpiry[] = []
  const note = (kind: CredentialExpiry['kind'], handle: SecretHandle): void => {
    try {
      const [beganAtMs, endsAtMs] = END_OF[kind](handle.current().reveal())
      const lastPartMs = beganAtMs === undefined ? LEAST_LEFT_MS : (endsAtMs - beganAtMs) * LAST_PART
      ends.push({ kind, label: handle.label, endsAtMs, renewByMs: endsAtMs - Math.min(DAY_MS, lastPartMs) })
    } catch {
      // Its user reports why it is unusable.
    }
  }
  const chain = auth?.tls?.certificateSecretRef ?? auth?.key?.certificateSecretRef
  if (chain !== undefined) note('certificate', deps.secrets.handle(chain))
  if (auth?.method === 'tokenFile') note('token', deps.tokenFile(auth.tokenFile?.path))
  return ends
}
