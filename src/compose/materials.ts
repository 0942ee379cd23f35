import { Failure, type Log, RefCountedPool, Secret, type SecretHandle, type Secrets } from '../core/index.ts'
import { areCertificates, openWatchedFile, type WatchedFile } from '../files/index.ts'
import type { OpenSecrets } from '../secrets/index.ts'

const MAX_CA_BYTES = 1024 * 1024
const MAX_TOKEN_BYTES = 64 * 1024
const PEM = /-----BEGIN [A-Z ]+-----/
/** Characters of a compact JWT; the token is sent in a form. */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Azure workload identity sets this variable to the path of its projected token. */
const AZURE_TOKEN_FILE = 'AZURE_FEDERATED_TOKEN_FILE'

/** The open files that one configuration references. */
export interface HeldNamedFiles {
  /** Current content of a CA file; undefined until it has been readable once, and then nothing is sent. */
  readonly certificate: (path: string) => () => Buffer | undefined
  /** A PEM file as a secret: a certificate chain or a private key. */
  readonly pem: (path: string) => SecretHandle
  /** Current token in a file. Default path: the one in the environment. */
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

/** Secrets and files that configurations reference. Parts that outlive their configuration use a holder of their own. */
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

/** Opens CA and token files. A file is opened once, watched, and closed when its last holder releases it. */
export function openNamedFiles(log: Log, env: Readonly<Record<string, string | undefined>>): NamedFiles {
  const authorities = new RefCountedPool<WatchedFile>((file) => file.close())
  const tokens = new RefCountedPool<WatchedFile>((file) => file.close())
  const pems = new RefCountedPool<WatchedFile>((file) => file.close())
  const openAuthorities = (path: string): WatchedFile =>
    openWatchedFile(path, {
      maxBytes: MAX_CA_BYTES,
      // Node accepts a file without certificates, and would then trust no server.
      accept: areCertificates,
      onProblem: (reason) => log.warn({ file: path, reason }, 'CA file unusable'),
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
      onProblem: (reason) => log.warn({ file: path, reason }, 'token file unusable'),
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
        // Closing a watched file is synchronous.
        release() {
          void heldAuthorities.release()
          void heldTokens.release()
          void heldPems.release()
        },
      }
    },
  }
}
