import { within } from '../mutation.ts'

/** Guards of `src/signing`. */
export default [
  ...within(
    'src/signing/sealing-secrets.ts',
    ['test/unit/authserver/chain-and-keys.test.ts'],
    [['an HMAC secret has 32 bytes', 'first.bytes().length < LEAST_BYTES', 'first.bytes().length < 1']],
  ),
]
