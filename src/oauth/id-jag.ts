/** `typ` of an identity assertion (draft-ietf-oauth-identity-assertion-authz-grant §3.1). */
export const ID_JAG = 'oauth-id-jag+jwt'
