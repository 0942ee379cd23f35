import type { Expected } from '../oracle/call.ts'
import type { Part } from '../oracle/excuses.ts'

/** The identity of a caller. */
export interface Identity {
  readonly subject: string
  readonly groups: readonly string[]
  readonly team: 'search' | 'payments' | undefined
}

/**
 * How callers of a route are known: not at all, by a token of the identity provider, by a login at the proxy; `account`: by a
 * token, and the route needs an account that they connect.
 */
export type KnownBy = 'nothing' | 'token' | 'login' | 'account'

/** A route, before any caller. */
export interface Profile {
  readonly path: string
  /** Where it is found. Default: with the proxies. */
  readonly origin?: string
  readonly knownBy: KnownBy
  /** Beside the proxies and the backend. */
  readonly needs: readonly Part[]
  readonly expected: (identity: Identity) => Expected
}

/** Which fixed secrets the backend would take. */
export interface Current {
  isCurrent(which: 'bearer' | 'apiKey', value: string): boolean
}

const ROLE = 'arn:cloud:iam::000000000000:role/lab-'
const ALWAYS: readonly Part[] = ['backend', 'replica', 'drain', 'pause', 'descriptors', 'clock']

/** Routes that need no service behind the proxies. */
export const needsOf = (profile: Profile, more: readonly Part[] = []): readonly Part[] => [
  ...(profile.origin === undefined ? ALWAYS : []),
  ...profile.needs,
  ...more,
]

const verified = (members: Readonly<Record<string, string>>): Expected => ({ verified: members, hasCredential: true })

const roleOf = ({ groups }: Identity): string => {
  if (groups.includes('admins')) return `${ROLE}admin`
  return groups.includes('dev') ? `${ROLE}developer` : `${ROLE}reader`
}

/** The routes of config/lab, each with what its backend has to see. */
export const profilesOf = (current: Current): readonly Profile[] => [
  {
    path: '/unauthenticated',
    knownBy: 'nothing',
    needs: [],
    expected: () => ({ verified: {}, hasCredential: false }),
  },
  {
    path: '/header-injection',
    knownBy: 'nothing',
    needs: [],
    expected: () => ({
      verified: {},
      hasCredential: false,
      header: { name: 'x-api-key', isGood: (value) => current.isCurrent('apiKey', value) },
    }),
  },
  {
    path: '/bearer-token',
    knownBy: 'token',
    needs: ['provider'],
    expected: () => verified({ token: 'the one that it knows' }),
  },
  {
    path: '/client-credentials',
    knownBy: 'token',
    needs: ['provider', 'own token'],
    expected: () => verified({ 'claims.sub': 'lab-proxy' }),
  },
  {
    path: '/token-exchange',
    knownBy: 'token',
    needs: ['provider'],
    expected: ({ subject }) => verified({ 'claims.sub': subject, 'claims.act.sub': 'lab-exchange' }),
  },
  {
    path: '/obo',
    knownBy: 'token',
    needs: ['provider'],
    expected: ({ subject }) => verified({ 'claims.sub': subject }),
  },
  {
    path: '/connected',
    knownBy: 'account',
    needs: ['provider', 'workspace', 'store'],
    expected: ({ subject }) => verified({ workspaceUser: subject }),
  },
  {
    path: '/cloud-sts',
    knownBy: 'token',
    needs: ['provider', 'sts'],
    expected: (identity) =>
      verified({ roleArn: roleOf(identity), sessionName: identity.subject, subject: identity.subject }),
  },
  {
    path: '/aws-service',
    knownBy: 'token',
    needs: ['provider', 'sts', 'own keys'],
    expected: () => verified({ roleArn: `${ROLE}service` }),
  },
  {
    path: '/aws-chained',
    knownBy: 'token',
    needs: ['provider', 'sts', 'hub keys'],
    expected: ({ subject, team }) =>
      team === undefined
        ? verified({ roleArn: `${ROLE}guest`, 'tags.User': subject })
        : verified({ roleArn: ROLE + team, 'tags.User': subject, 'tags.Team': team, sourceIdentity: subject }),
  },
  {
    path: '/upstream',
    knownBy: 'login',
    needs: ['provider', 'workspace', 'store', 'own server'],
    expected: ({ subject }) => verified({ workspaceUser: subject }),
  },
  {
    path: '/upstream-exchange',
    knownBy: 'login',
    needs: ['provider', 'store', 'own server'],
    expected: ({ subject }) => verified({ 'claims.sub': subject }),
  },
  {
    path: '/xaa',
    knownBy: 'login',
    needs: ['provider', 'store', 'own server'],
    expected: ({ subject }) => verified({ 'claims.email': `${subject}@example.com` }),
  },
]

/** The list of the registry, which has no backend. */
export const registryProfile = (origin: string, path: string): Profile => ({
  path,
  origin,
  knownBy: 'token',
  needs: ['provider'],
  expected: () => ({ verified: {}, hasCredential: false }),
})
