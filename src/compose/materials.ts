import { Failure, type Log, RefCountedPool, Secret, type SecretHandle, type Secrets } from '../core/index.ts'
import { areCertificates, openWatchedFile, type WatchedFile } from '../files/index.ts'
import type { OpenSecrets } from '../secrets/index.ts'

const MAX_CA_BYTES = 1024 * 1024
const MAX_TOKEN_BYTES = 64 * 1024
const PEM = /-----BEGIN [A-Z ]+-----/
/** A JWT and nothing else; it goes into a form. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** As workload identity of Azure names the file of its projected token. */
const AZURE_TOKEN_FILE = 'AZURE_FEDERATED_TOKEN_FILE'

/** The files that one configuration names. */
export interface HeldNamedFiles {
  /** The content of a CA file now; undefined while it has never been readable, and then nothing is sent. */
  readonly certificate: (path: string) => () => Buffer | undefined
  /** A PEM file as a secret: a certificate chain or a private key. */
  readonly pem: (path: string) => SecretHandle
  /** The token in a file now; undefined: the file that the environment names. */
  readonly tokenFile: (path: string | undefined) => SecretHandle
  release(): void
}

export interface NamedFiles {
  hold(): HeldNamedFiles
}

/** Secrets and files of one holder, released together. */
export interface HeldMaterials extends HeldNamedFiles {
  readonly secrets: Secrets
}

/** Secrets and files that configurations name. What may outlive the configuration that opened it is a holder of its own. */
export interface Materials {
  hold(): HeldMaterials
}

export function createMaterials(secrets: OpenSecrets, files: NamedFiles): Materials {
  return {
    hold() {
      const [heldSecrets, heldFiles] = [secrets.hold(), files.hold()]
      return {
        ...heldFiles,
        secrets: heldSecrets,
        release() {
          heldSecrets.release()
          heldFiles.release()
        },
      }
    },
  }
}

const textOf = (content: Buffer): string => content.toString('utf8').trim()

function secretHandle(path: string, file: WatchedFile): SecretHandle {
  let known: { readonly version: number; readonly secret: Secret } | undefined
  return {
    label: path,
    current() {
      const content = file.read()
      if (content === undefined) throw new Failure('secret_unavailable', { detail: `${path} cannot be read` })
      if (known?.version !== file.version) known = { version: file.version, secret: new Secret(textOf(content)) }
      return known.secret
    },
    get version() {
      return file.version
    },
    refresh: () => file.refresh(),
  }
}

const NO_FILE: SecretHandle = {
  label: AZURE_TOKEN_FILE,
  version: 0,
  current() {
    throw new Failure('secret_unavailable', { detail: `tokenFile has no path, and ${AZURE_TOKEN_FILE} is not set` })
  },
  refresh: () => Promise.resolve(false),
}

/** Files of authorities and tokens that configurations name, each opened once, kept current, and closed with the last that names it. */
export function openNamedFiles(log: Log, env: Readonly<Record<string, string | undefined>>): NamedFiles {
  const authorities = new RefCountedPool<WatchedFile>((file) => file.close())
  const tokens = new RefCountedPool<WatchedFile>((file) => file.close())
  const pems = new RefCountedPool<WatchedFile>((file) => file.close())
  const openAuthorities = (path: string): WatchedFile =>
    openWatchedFile(path, {
      maxBytes: MAX_CA_BYTES,
      // Node's TLS takes anything, and would trust nobody then.
      accept: areCertificates,
      onProblem: (reason) => log.warn({ file: path, reason }, 'a CA file cannot be used'),
    })
  const openPem = (path: string): WatchedFile =>
    openWatchedFile(path, {
      maxBytes: MAX_CA_BYTES,
      accept: (content) => PEM.test(content.toString('latin1')),
      onProblem: (reason) => log.warn({ file: path, reason }, 'PEM file unusable'),
    })
  const openToken = (path: string): WatchedFile =>
    openWatchedFile(path, {
      maxBytes: MAX_TOKEN_BYTES,
      accept: (content) => TOKEN.test(textOf(content)),
      onProblem: (reason) => log.warn({ file: path, reason }, 'a token file cannot be used'),
    })
  return {
    hold() {
      const [heldAuthorities, heldTokens, heldPems] = [authorities.hold(), tokens.hold(), pems.hold()]
      return {
        certificate: (path) => {
          const file = heldAuthorities.get(path, () => openAuthorities(path))
          return () => file.read()
        },
        pem: (path) =>
          secretHandle(
            path,
            heldPems.get(path, () => openPem(path)),
          ),
        tokenFile(named) {
          const path = named ?? env[AZURE_TOKEN_FILE]
          if (path === undefined || path === '') return NO_FILE
          return secretHandle(
            path,
            heldTokens.get(path, () => openToken(path)),
          )
        },
        // Closing a watched file waits for nothing.
        release() {
          void heldAuthorities.release()
          void heldTokens.release()
          void heldPems.release()
        },
      }
    },
  }
}
