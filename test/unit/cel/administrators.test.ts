import { describe, expect, test } from 'vitest'
import { compileMatcher } from '../../../src/cel/index.ts'
import { claimsOf } from '../../support/cel/support/claims.ts'

/** Tokens as identity providers issue them. */
const CLAIMS = claimsOf(`{
  "iss": "https://login.example.com/", "sub": "auth0|5f7c8ec7c33c6c004bbafe82", "aud": ["api://mcp", "account"],
  "exp": 1893456000, "iat": 1893452400, "auth_time": 1893452000, "azp": "mcp-client", "email": "Ada.Lovelace@example.com",
  "email_verified": true, "name": "Ada Lovelace", "groups": ["engineering", "team:payments", "oncall"],
  "roles": [], "scope": "openid profile mcp:tools", "amr": ["pwd", "mfa"], "acr": "urn:example:loa:2", "level": 7, "ratio": 0.5,
  "realm_access": {"roles": ["offline_access", "admin"]},
  "resource_access": {"mcp": {"roles": ["reader"]}, "account": {"roles": ["manage-account"]}},
  "https://example.com/tenant": "acme", "https://example.com/entitlements": [{"app": "billing", "level": 3}, {"app": "mcp", "level": 5}],
  "department": null, "address": {"country": "DE", "zip": "10115"}, "employee_id": "0042", "tags": {"env": "prod", "tier": "1"}
}`)

const MATCHES = [
  'true',
  'claims.sub == "auth0|5f7c8ec7c33c6c004bbafe82"',
  'claims.sub.startsWith("auth0|")',
  'claims.iss == "https://login.example.com/"',
  '"api://mcp" in claims.aud',
  'claims.azp == "mcp-client"',
  'claims.azp in ["mcp-client", "mcp-cli"]',
  '"engineering" in claims.groups',
  '"engineering" in claims.groups && "oncall" in claims.groups',
  '"finance" in claims.groups || "oncall" in claims.groups',
  '!("finance" in claims.groups)',
  'claims.groups.exists(g, g.startsWith("team:"))',
  'claims.groups.exists(g, g == "oncall" || g == "sre")',
  'claims.groups.exists(g, g in ["sre", "oncall"])',
  'claims.groups.all(g, g != "blocked")',
  'claims.groups.exists_one(g, g.startsWith("team:"))',
  'claims.groups.filter(g, g.startsWith("team:")) == ["team:payments"]',
  'claims.groups.map(g, size(g)).exists(n, n > 10)',
  'size(claims.groups) >= 3',
  'claims.groups.size() < 10',
  'claims.groups[0] == "engineering"',
  'has(claims.email) && claims.email.endsWith("@example.com")',
  'claims.email.matches("^[A-Za-z.]+@example\\\\.com$")',
  'claims.email.matches(r"(?i)^ada\\.")',
  'claims.email_verified',
  'claims.email_verified == true',
  'claims.email_verified && claims.email.contains("@example.")',
  '"mcp:tools" in ["mcp:tools", "mcp:read"] && claims.scope.contains("mcp:tools")',
  'claims.scope.matches("(^| )mcp:tools( |$)")',
  '"mfa" in claims.amr',
  'claims.acr in ["urn:example:loa:2", "urn:example:loa:3"]',
  'claims.level == 7',
  'claims.level > 5',
  'claims.level >= 7 && claims.level < 8',
  'claims.level in [5, 6, 7]',
  'claims.ratio == 0.5',
  'claims.ratio < 1',
  'int(claims.level) % 2 == 1',
  '"admin" in claims.realm_access.roles',
  'has(claims.realm_access) && "admin" in claims.realm_access.roles',
  '"reader" in claims.resource_access.mcp.roles',
  '"mcp" in claims.resource_access && "reader" in claims.resource_access["mcp"].roles',
  'claims.resource_access.exists(client, "manage-account" in claims.resource_access[client].roles)',
  'claims["https://example.com/tenant"] == "acme"',
  '"https://example.com/tenant" in claims',
  'claims["https://example.com/entitlements"].exists(e, e.app == "mcp" && e.level >= 5)',
  'claims.department == null',
  'has(claims.department)',
  '!has(claims.manager)',
  '!has(claims.manager) || claims.manager == "grace"',
  'has(claims.manager) ? claims.manager == "grace" : claims.address.country == "DE"',
  'claims.address == {"country": "DE", "zip": "10115"}',
  'claims.address.zip.startsWith("101")',
  'int(claims.employee_id) == 42',
  'string(int(claims.level)) == "7"',
  'timestamp(int(claims.exp)) > timestamp("2029-12-31T00:00:00Z")',
  'timestamp(int(claims.iat)) - timestamp(int(claims.auth_time)) < duration("10m")',
  'timestamp(int(claims.iat)).getFullYear() == 2029',
  'claims.tags.all(key, claims.tags[key] != "")',
  'claims.tags.env == "prod" && claims.tags["tier"] == "1"',
  'type(claims.groups) == list && type(claims.sub) == string',
  'claims.roles == [] && claims.roles.size() == 0',
  '// the people on call\n// and their seniors\n"oncall" in claims.groups\n  && claims.level > 3 // seniors',
]

const DOES_NOT_MATCH = [
  'false',
  'claims.groups == []',
  '"Engineering" in claims.groups',
  'claims.email == "ada.lovelace@example.com"',
  'claims.level == "7"',
  'claims.level == 7.5',
  '"0" in claims.groups',
  'has(claims.realm_access.groups)',
  'claims.employee_id == 42',
  'claims.email.matches("^Ada$")',
]

describe('expressions that administrators write', () => {
  test.each(MATCHES)('%s matches', (expression) => {
    expect(compileMatcher(expression).evaluate(CLAIMS)).toEqual({ outcome: 'matched' })
  })

  test.each(DOES_NOT_MATCH)('%s does not', (expression) => {
    expect(compileMatcher(expression).evaluate(CLAIMS)).toEqual({ outcome: 'not_matched' })
  })

  test('there are at least sixty', () => {
    expect(new Set([...MATCHES, ...DOES_NOT_MATCH]).size).toBeGreaterThanOrEqual(60)
  })
})
