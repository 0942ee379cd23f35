import type { ProviderFiles } from '../oauth/index.ts'
import { Failure, Secret, type Log, type SecretHandle } from '../core/index.ts'
import { areCertificates, openWatchedFile, type WatchedFile } from '../files/index.ts'
import type { Provider as ProviderSettings } from '../resources/index.ts'
import type { AuthenticateDeps } from './deps.ts'

const MAX_CA_BYTES = 1024 * 1024
const MAX_SECRET_BYTES = 64 * 1024

/** Characters of a bearer token (RFC 6750 §2.1); others are invalid in a header. */
const TOKEN = /^[\w\-.~+/]+=*$/

const textOf = (content: Buffer): string => content.toString('utf8').replace(/\r?\n$/, '')

/** Opens the files of one provider. Missing files are logged and retried, not an error. */
export function openProviderFiles(provider: ProviderSettings, deps: AuthenticateDeps): ProviderFiles {
  const open = deps.openFile ?? openWatchedFile
  const opened: WatchedFile[] = []
  const openFile = (field: string, path: string, maxBytes: number, accept: (content: Buffer) => boolean) => {
    const file = open(path, { maxBytes, accept, onProblem: logProblem(deps.log, provider.name, field, path) })
    opened.push(file)
    return file
  }
  const secretFile = (field: string, path: string, isValid: (text: string) => boolean): SecretHandle => {
    const file = openFile(field, path, MAX_SECRET_BYTES, (content) => isValid(textOf(content)))
    let known: { version: number; secret: Secret } | undefined
    return {
      label: `${field} of provider ${provider.name}`,
      get version() {
        return file.version
      },
      current() {
        const content = file.read()
        if (content === undefined)
          throw new Failure('secret_unavailable', { detail: `${field} of provider ${provider.name} cannot be read` })
        if (known?.version !== file.version) known = { version: file.version, secret: new Secret(textOf(content)) }
        return known.secret
      },
      refresh: () => file.refresh(),
    }
  }

  const { caCertPath, authTokenFile, clientSecretFile } = provider
  const ca = caCertPath === undefined ? undefined : openFile('caCertPath', caCertPath, MAX_CA_BYTES, areCertificates)
  return {
    caCert: ca === undefined ? undefined : () => ca.read(),
    authToken:
      authTokenFile === undefined ? undefined : secretFile('authTokenFile', authTokenFile, (text) => TOKEN.test(text)),
    clientSecret:
      clientSecretFile === undefined
        ? undefined
        : secretFile('clientSecretFile', clientSecretFile, (text) => text.trim() !== ''),
    close() {
      for (const file of opened) file.close()
    },
  }
}

const logProblem = (log: Log, provider: string, field: string, file: string) => (problem: string) =>
  log.warn({ provider, field, file, problem }, 'identity provider file unusable')
