/** Role, rule and priority of a mapping. */
export type Shorthand = readonly [role: string, rule: { claim: string } | { matcher: string }, priority?: number]

export interface Table {
  readonly name: string
  readonly roleClaim?: string
  readonly mappings: readonly Shorthand[]
  readonly fallback?: string
  readonly onMatcherError?: 'skip' | 'deny'
  /** Claims → role, or the reason of the refusal: `no_role`, `rule_limit`, `matcher_error`. */
  readonly cases: readonly (readonly [claims: object, expected: string])[]
}

export const claim = (value: string) => ({ claim: value })
export const matcher = (expression: string) => ({ matcher: expression })

/** Mappings by `claim`. */
export const CLAIM_TABLES: readonly Table[] = [
  {
    name: 'claim in an array',
    mappings: [
      ['admin', claim('admins')],
      ['reader', claim('readers')],
    ],
    cases: [
      [{ groups: ['admins'] }, 'admin'],
      [{ groups: ['readers'] }, 'reader'],
      [{ groups: ['readers', 'admins'] }, 'admin'],
      [{ groups: ['admins', 'readers'] }, 'admin'],
      [{ groups: ['x', 'y', 'readers'] }, 'reader'],
      [{ groups: ['Admins'] }, 'no_role'],
      [{ groups: ['admins '] }, 'no_role'],
      [{ groups: [' admins'] }, 'no_role'],
      [{ groups: ['admin'] }, 'no_role'],
      [{ groups: ['adminss'] }, 'no_role'],
      [{ groups: [] }, 'no_role'],
      [{ groups: [''] }, 'no_role'],
      [{ groups: [null] }, 'no_role'],
      [{ groups: [1, true, null, 'admins'] }, 'admin'],
      [{ groups: [['admins']] }, 'no_role'],
      [{ groups: [{ admins: true }] }, 'no_role'],
      [{}, 'no_role'],
      [{ groups: null }, 'no_role'],
      [{ groups: 7 }, 'no_role'],
      [{ groups: true }, 'no_role'],
      [{ roles: ['admins'] }, 'no_role'],
      [{ Groups: ['admins'] }, 'no_role'],
    ],
  },
  {
    name: 'claim as one string',
    mappings: [['admin', claim('admins')]],
    fallback: 'guest',
    cases: [
      [{ groups: 'admins' }, 'admin'],
      [{ groups: 'admins readers' }, 'guest'],
      [{ groups: 'admins,readers' }, 'guest'],
      [{ groups: 'superadmins' }, 'guest'],
      [{ groups: '' }, 'guest'],
      [{}, 'guest'],
      [{ groups: ['other'] }, 'guest'],
    ],
  },
  {
    name: 'claim as a key of an object',
    mappings: [
      ['admin', claim('admins')],
      ['proto', claim('__proto__')],
      ['ctor', claim('constructor')],
      ['string', claim('toString')],
    ],
    cases: [
      [{ groups: { admins: true } }, 'admin'],
      [{ groups: { admins: false } }, 'admin'],
      [{ groups: { admins: null } }, 'admin'],
      [{ groups: { other: 'admins' } }, 'no_role'],
      [{ groups: {} }, 'no_role'],
      [{ groups: { constructor: 1 } }, 'ctor'],
      [{ groups: ['constructor'] }, 'ctor'],
      [{ groups: ['toString'] }, 'string'],
      [{ groups: [] }, 'no_role'],
    ],
  },
  ...['scope', 'scp'].map((roleClaim): Table => ({
    name: `${roleClaim} is split at spaces`,
    roleClaim,
    mappings: [
      ['writer', claim('mcp:write')],
      ['reader', claim('mcp:read')],
      ['both', claim('mcp:read mcp:write')],
    ],
    cases: [
      [{ [roleClaim]: 'mcp:read' }, 'reader'],
      [{ [roleClaim]: 'mcp:read mcp:write' }, 'writer'],
      [{ [roleClaim]: 'openid mcp:read profile' }, 'reader'],
      [{ [roleClaim]: 'mcp:reader' }, 'no_role'],
      [{ [roleClaim]: 'mcp:read,mcp:write' }, 'no_role'],
      [{ [roleClaim]: 'mcp:read\tmcp:write' }, 'no_role'],
      [{ [roleClaim]: '' }, 'no_role'],
      [{ [roleClaim]: ['mcp:write'] }, 'writer'],
      [{ [roleClaim]: ['mcp:read mcp:write'] }, 'both'],
      [{}, 'no_role'],
    ],
  })),
  {
    name: 'roleClaim is a literal name first, then a dot path',
    roleClaim: 'realm_access.roles',
    mappings: [
      ['admin', claim('admin')],
      ['literal', claim('literal')],
    ],
    cases: [
      [{ realm_access: { roles: ['admin'] } }, 'admin'],
      [{ 'realm_access.roles': ['literal'] }, 'literal'],
      [{ 'realm_access.roles': ['literal'], realm_access: { roles: ['admin'] } }, 'literal'],
      [{ 'realm_access.roles': [], realm_access: { roles: ['admin'] } }, 'no_role'],
      [{ realm_access: { roles: 'admin' } }, 'admin'],
      [{ realm_access: { roles: { admin: 1 } } }, 'admin'],
      [{ realm_access: ['roles'] }, 'no_role'],
      [{ realm_access: 'roles' }, 'no_role'],
      [{ realm_access: null }, 'no_role'],
      [{ realm_access: {} }, 'no_role'],
      [{ roles: ['admin'] }, 'no_role'],
    ],
  },
  {
    name: 'roleClaim is a URL',
    roleClaim: 'https://example.com/groups',
    mappings: [['admin', claim('admins')]],
    cases: [
      [{ 'https://example.com/groups': ['admins'] }, 'admin'],
      [{ 'https://example.com/groups': 'admins' }, 'admin'],
      [{ 'https://example': { 'com/groups': ['admins'] } }, 'admin'],
      [{ groups: ['admins'] }, 'no_role'],
    ],
  },
  {
    name: 'roleClaim with names of JavaScript',
    roleClaim: 'constructor.name',
    mappings: [
      ['object', claim('Object')],
      ['mine', claim('mine')],
    ],
    cases: [
      [{}, 'no_role'],
      [{ constructor: { name: 'mine' } }, 'mine'],
    ],
  },
]
