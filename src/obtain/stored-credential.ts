import { Secret, type Credential } from '../core/index.ts'

/**
 * Serializes a fetched credential for other replicas. Clear text, so it must be sealed. Undefined for an incomplete
 * one.
 */
export const storedCredential = {
  encode(credential: Credential): object {
    switch (credential.kind) {
      case 'header':
        return { kind: 'header', name: credential.name, value: credential.value.reveal() }
      case 'aws': {
        const { accessKeyId, secretAccessKey, sessionToken, region, service } = credential
        const secrets = { secretAccessKey: secretAccessKey.reveal(), sessionToken: sessionToken?.reveal() }
        return { kind: 'aws', accessKeyId, ...secrets, region, service }
      }
      case 'none':
        break
    }
    return { kind: 'none' }
  },
  decode(written: unknown): Credential | undefined {
    if (typeof written !== 'object' || written === null) return undefined
    const text = (name: string): string | undefined => {
      const value: unknown = Object.entries(written).find(([key]) => key === name)?.[1]
      return typeof value === 'string' && value !== '' ? value : undefined
    }
    const kind = text('kind')
    if (kind === 'none') return { kind: 'none' }
    if (kind === 'header') {
      const [name, value] = [text('name'), text('value')]
      return name === undefined || value === undefined ? undefined : { kind, name, value: new Secret(value) }
    }
    const [accessKeyId, key, token] = [text('accessKeyId'), text('secretAccessKey'), text('sessionToken')]
    const [region, service] = [text('region'), text('service')]
    if (kind !== 'aws' || accessKeyId === undefined || key === undefined || token === undefined) return undefined
    if (region === undefined || service === undefined) return undefined
    const secrets = { secretAccessKey: new Secret(key), sessionToken: new Secret(token) }
    return { kind, accessKeyId, ...secrets, region, service, signing: { day: '', key: undefined } }
  },
}
