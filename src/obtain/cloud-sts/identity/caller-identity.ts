import { Failure } from '../../../core/index.ts'
import { createStsClient, loadSts, type StsClientOptions } from '../sts-client.ts'
import { stsFailure } from '../sts-failure.ts'
import type { KeysOnly } from './keys.ts'

/** Longer values are not ARNs. */
const LONGEST_ARN = 2_048

/** The ARN of the holder of these keys, an operation that needs no permission. Throws `Failure`. */
export async function callerIdentity(
  options: Omit<StsClientOptions, 'keys'>,
  { accessKeyId, secretAccessKey, sessionToken }: KeysOnly,
  nowMs: number,
): Promise<string> {
  const token = sessionToken === undefined ? {} : { sessionToken: sessionToken.reveal() }
  const keys = { accessKeyId, secretAccessKey: secretAccessKey.reveal(), ...token }
  const client = createStsClient({ ...options, keys: () => Promise.resolve(keys) })
  const { GetCallerIdentityCommand } = loadSts()
  try {
    const { Arn = '' } = await client.send(new GetCallerIdentityCommand({}))
    if (/^arn:[\x21-\x7e]+$/.test(Arn) && Arn.length <= LONGEST_ARN) return Arn
  } catch (error) {
    throw stsFailure(error, nowMs, 'process')
  }
  throw new Failure('sts_failed', { detail: 'STS returned no caller identity' })
}
