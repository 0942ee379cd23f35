import type { AwsCredential, Credential } from '../../core/index.ts'
import type { ResolvedAuthOf } from '../../resources/index.ts'
import type { Source } from '../source.ts'
import { nameOfCaller } from '../rejections.ts'
import { type IdentityDeps, identityFor } from './identity/identities.ts'
import { type AwsKeys, credentialWith } from './identity/keys.ts'

/**
 * Type `cloudSts` with `signAs: service`: requests are signed with the process identity itself, the same for all
 * callers. It refreshes itself, without the credential cache. `obtain` throws `aws_identity_unavailable`.
 */
export function createServiceSource({ spec }: Pick<ResolvedAuthOf<'cloudSts'>, 'spec'>, deps: IdentityDeps): Source {
  const identity = identityFor(spec, spec.source ?? { type: 'ambient' }, deps)
  let given: { readonly keys: AwsKeys; readonly credential: AwsCredential } | undefined
  const keysOf = new WeakMap<Credential, AwsKeys>()

  const credentialFor = (keys: AwsKeys): AwsCredential => {
    // The signing key is cached in the credential, so equal keys share one credential.
    if (given?.keys === keys) return given.credential
    const credential = credentialWith(keys, spec)
    given = { keys, credential }
    keysOf.set(credential, keys)
    return credential
  }

  return {
    obtain() {
      const keys = identity.current()
      return keys instanceof Promise ? keys.then(credentialFor) : credentialFor(keys)
    },
    reject: (caller, refused) => {
      const keys = keysOf.get(refused)
      return keys !== undefined && identity.reject(keys, nameOfCaller(caller))
    },
  }
}
