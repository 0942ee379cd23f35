import type { CrdKind } from '../../../../../src/load/publish/index.ts'

type Json = { [name: string]: unknown }

const arn = 'arn:aws:iam::123456789012:role/reader'
const secret = { name: 'keys', key: 'current' }
const ref = { name: 'token' }
const annotated = { annotations: { a: 'b' }, labels: { a: 'b' } }
const userInfo = {
  endpointUrl: 'https://api.example.com/user',
  httpMethod: 'POST',
  additionalHeaders: { accept: 'application/json' },
  fieldMapping: { subjectFields: ['id'], nameFields: ['name'], emailFields: ['email'] },
}
const client = {
  clientId: 'a',
  clientSecretRef: secret,
  redirectUri: 'https://mcp.example.com/oauth/callback',
  additionalAuthorizationParams: { prompt: 'consent' },
  scopes: ['openid'],
}
const kvstore = {
  aclUserConfig: { usernameSecretRef: secret, passwordSecretRef: secret },
  sentinelConfig: { masterName: 'mymaster', db: 1, sentinelAddrs: ['redis-0:26379'] },
  tls: { caCertSecretRef: secret, insecureSkipVerify: false },
  sentinelTls: { caCertSecretRef: secret },
  dialTimeout: '5s',
  readTimeout: '3s',
  writeTimeout: '3s',
  waitReplicas: 1,
}
const server = {
  issuer: 'https://auth.example.com',
  authorizationEndpointBaseUrl: 'https://login.example.com/base',
  upstreamProviders: [
    {
      name: 'corp',
      type: 'oidc',
      oidcConfig: { issuerUrl: 'https://idp.example.com', ...client, userInfoOverride: userInfo },
      caBundleRef: secret,
      allowPrivateIP: true,
    },
    {
      name: 'github',
      type: 'oauth2',
      oauth2Config: {
        authorizationEndpoint: 'https://github.example.com/authorize',
        tokenEndpoint: 'https://github.example.com/token',
        ...client,
        tokenResponseMapping: {
          accessTokenPath: 'a.token',
          expiresInPath: 'a.expires',
          refreshTokenPath: 'a.refresh',
          scopePath: 'a.scope',
        },
        userInfo,
      },
    },
  ],
  hmacSecretRefs: [secret],
  signingKeySecretRefs: [secret],
  storage: { type: 'kvstore', kvstore },
  tokenLifespans: { accessTokenLifespan: '30m', refreshTokenLifespan: '24h', authCodeLifespan: '1m' },
  limits: {
    registration: { perSecond: 1, burst: 10 },
    authorize: { perSecond: 5, burst: 50 },
    token: { perSecond: 20, burst: 100 },
    registeredClients: 100,
  },
  clientMetadata: { allowPrivateIP: true, caBundleRef: secret },
  forwardClaims: ['groups'],
}
const auth = {
  mode: 'oauth',
  publicPaths: ['/health'],
  oauth: {
    resourceUrl: 'https://mcp.example.com',
    realm: 'mcp',
    scopesSupported: ['read'],
    publicPaths: ['/docs'],
    resourceDocumentation: 'https://mcp.example.com/docs',
    toleranceSeconds: 5,
    providers: [
      {
        name: 'corp',
        issuerUrl: 'https://idp.example.com',
        audience: 'mcp',
        audienceClaim: 'client_id',
        subject: 'alice',
        jwksUrl: 'https://idp.example.com/jwks',
        introspectionUrl: 'https://idp.example.com/introspect',
        clientId: 'a',
        clientSecretRef: secret,
        caBundleRef: { configMapRef: secret },
        authTokenFile: '/var/run/token',
        allowPrivateIP: true,
        introspection: { requireAudience: true },
        insecureAllowHttp: false,
      },
    ],
  },
}
const describedInline = {
  issuer: 'https://idp.example.com',
  jwksUrl: 'https://idp.example.com/jwks',
  introspectionUrl: 'https://idp.example.com/introspect',
  clientId: 'a',
  clientSecretRef: secret,
  caBundleRef: { secretRef: secret },
  jwksAuthTokenPath: '/var/run/token',
  jwksAllowPrivateIP: true,
  protectedResourceAllowPrivateIP: true,
}
const inline = { ...describedInline, audience: 'mcp', insecureAllowHttp: true, scopes: ['read'] }
const addHeadersFromSecret = [{ headerName: 'X-Api-Key', valueSecretRef: secret }]
const routeFields = {
  headerForward: { addPlaintextHeaders: { 'X-Tenant': 'a' }, addHeadersFromSecret },
  timeouts: { connect: '5s', firstByte: '1m', idle: '0s' },
  limits: { bufferedBody: '10Mi' },
  sseKeepAlive: '15s',
}
const oidcConfigRef = { name: 'corp', audience: 'mcp', scopes: ['read'], resourceUrl: 'https://mcp.example.com' }

/** Objects with every field that their kind has, at least once over all of them. */
export const WHOLE: readonly (readonly [CrdKind, Json])[] = [
  ['MCPExternalAuthConfig', { type: 'unauthenticated' }],
  ['MCPExternalAuthConfig', { type: 'bearerToken', bearerToken: { tokenSecretRef: secret } }],
  [
    'MCPExternalAuthConfig',
    { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: secret } },
  ],
  ['MCPExternalAuthConfig', { type: 'upstreamInject', upstreamInject: { providerName: 'github' } }],
  [
    'MCPExternalAuthConfig',
    {
      type: 'tokenExchange',
      tokenExchange: {
        tokenUrl: 'https://idp.example.com/token',
        audience: 'backend',
        clientId: 'a',
        clientSecretRef: secret,
        scopes: ['read'],
        externalTokenHeaderName: 'X-Token',
        subjectProviderName: 'github',
        subjectTokenType: 'jwt',
        resource: 'https://api.example.com',
        actorTokenSecretRef: secret,
        actorTokenType: 'jwt',
        requestedTokenType: 'jwt',
        clientAuthMethod: 'client_secret_post',
        clientKeySecretRef: secret,
        caCertPath: './ca.pem',
        insecureAllowHttp: false,
      },
    },
  ],
  ...(['cloudSts', 'awsSts'] as const).map(
    (type) =>
      [
        'MCPExternalAuthConfig',
        {
          type,
          [type]: {
            region: 'eu-central-1',
            fallbackRoleArn: arn,
            roleClaim: 'groups',
            roleMappings: [
              { roleArn: arn, claim: 'admins', priority: 1 },
              { roleArn: arn, matcher: '"admins" in claims.groups' },
            ],
            service: 'mcp',
            sessionDuration: 900,
            sessionNameClaim: 'sub',
            subjectProviderName: 'github',
            sessionPolicy: '{"Statement":[]}',
            policyArns: ['arn:aws:iam::aws:policy/ReadOnly'],
            stsEndpoint: 'https://sts.example.com',
            caCertPath: './ca.pem',
          },
        },
      ] as const,
  ),
  ['MCPExternalAuthConfig', { type: 'embeddedAuthServer', embeddedAuthServer: server }],
  [
    'MCPExternalAuthConfig',
    {
      type: 'embeddedAuthServer',
      embeddedAuthServer: {
        ...server,
        storage: {
          type: 'redis',
          redis: {
            ...kvstore,
            sentinelConfig: { masterName: 'm', sentinelService: { name: 'redis', namespace: 'data', port: 26_379 } },
          },
        },
      },
    },
  ],
  ['MCPOIDCConfig', { type: 'inline', inline: { ...describedInline, insecureAllowHTTP: true } }],
  [
    'MCPOIDCConfig',
    {
      type: 'kubernetesServiceAccount',
      kubernetesServiceAccount: {
        serviceAccount: 'agent',
        namespace: 'agents',
        issuer: 'https://kubernetes.default.svc',
        jwksUrl: 'https://kubernetes.default.svc/openid/v1/jwks',
        introspectionUrl: 'https://kubernetes.default.svc/introspect',
        useClusterAuth: true,
      },
    },
  ],
  [
    'MCPRemoteProxy',
    {
      remoteUrl: 'https://api.example.com/mcp',
      oidcConfigRef,
      proxyPort: 8080,
      serviceAccount: 'own',
      sessionAffinity: 'ClientIP',
      sessionKeySecretRef: { name: 'sessions', key: 'key' },
      autoscaling: { minReplicas: 2, maxReplicas: 5, targetCPUUtilizationPercentage: 60 },
      resourceOverrides: {
        proxyDeployment: {
          ...annotated,
          env: [{ name: 'TZ', value: 'UTC' }],
          imagePullSecrets: [{ name: 'registry' }],
          podTemplateMetadataOverrides: annotated,
        },
        proxyService: annotated,
      },
    },
  ],
  ['VirtualMCPServer', { incomingAuth: { type: 'oidc', oidcConfigRef } }],
  [
    'MCPRemoteProxy',
    {
      remoteUrl: 'https://api.example.com/mcp',
      port: 8080,
      resourceUrl: 'https://mcp.example.com',
      externalAuthConfigRef: ref,
      authServerRef: { kind: 'MCPExternalAuthConfig', name: 'login' },
      auth,
      ...routeFields,
      caBundleRef: { configMapRef: secret },
      replicas: 2,
      image: 'registry.example.com/mcp-extauth:0.1.0',
      resources: { limits: { memory: '64Mi' } },
      podTemplateSpec: { spec: { priorityClassName: 'high' } },
      serviceAccountName: 'own',
      metricsFrom: [{ podSelector: {} }],
      networkPolicy: { enabled: true, ingressFrom: [{ podSelector: {} }] },
      egress: [{ to: [{ podSelector: {} }], ports: [{ port: 443 }] }],
      allowedOrigins: ['https://app.example.com'],
    },
  ],
  [
    'MCPRemoteProxy',
    {
      remoteURL: 'https://api.example.com',
      awsRoleArn: 'arn:aws:iam::123456789012:role/mcp-extauth',
      oidcConfig: { type: 'inline', resourceUrl: 'https://mcp.example.com', inline },
    },
  ],
  [
    'MCPRemoteProxy',
    {
      remoteURL: 'https://api.example.com',
      limits: { bufferedBody: 1024 },
      oidcConfig: {
        type: 'kubernetes',
        kubernetes: {
          serviceAccount: 'caller',
          namespace: 'mcp',
          audience: 'mcp',
          issuer: 'https://kubernetes.default.svc',
          jwksUrl: 'https://kubernetes.default.svc/openid/v1/jwks',
          introspectionUrl: 'https://idp.example.com/introspect',
          useClusterAuth: true,
        },
      },
    },
  ],
  ['MCPServerEntry', { remoteUrl: 'https://a.b', externalAuthConfigRef: ref, caBundleRef: { secretRef: secret } }],
  ['MCPServerEntry', { remoteUrl: 'https://a.example', oidcConfigRef, ...routeFields }],
  ['MCPServer', { port: 8080, image: 'x', externalAuthConfigRef: ref, authServerRef: { name: 'a' }, oidcConfigRef }],
  [
    'VirtualMCPServer',
    {
      outgoingAuth: {
        default: { type: 'externalAuthConfigRef', externalAuthConfigRef: ref },
        backends: { github: { externalAuthConfigRef: ref } },
      },
      authServerConfig: { issuer: server.issuer, upstreamProviders: [server.upstreamProviders[0]] },
      incomingAuth: { type: 'oidc', oidcConfig: { type: 'inline', inline } },
      resourceUrl: 'https://mcp.example.com',
    },
  ],
]
