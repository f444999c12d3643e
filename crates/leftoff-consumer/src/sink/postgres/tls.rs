//! Whom an encrypted connection is made to: what `sslmode=` and `sslrootcert=` ask for, as PostgreSQL's own programs have it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::sink::PostgresUrl;
use crate::sink::postgres_url::SslMode;

/// The longest file of certificates that is read.
const MAX_ROOTS_BYTES: u64 = 16 << 20;

/// What connects in TLS, where it is used at all.
pub(super) fn connector(url: &PostgresUrl) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = match url.sslmode() {
        SslMode::Disable | SslMode::Prefer => Trust::Anyone,
        // As PostgreSQL's own programs have it: who names an authority wants it asked.
        SslMode::Require if url.sslrootcert().is_none() => Trust::Anyone,
        SslMode::Require | SslMode::VerifyCa => signed(url, &provider, false)?,
        SslMode::VerifyFull => signed(url, &provider, true)?,
    };
    let verifier = Arc::new(Verifier { provider: provider.clone(), trust });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// What to do about a handshake that failed over the server's certificate; `None` if it failed over something else.
pub(super) fn distrust(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let why = error.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<Error>()?;
    let hint = match why {
        // The second: an authority of the same name with another key.
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "name the authority that signed it with sslrootcert=FILE"
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "connect by a name in its subjectAltName, or use sslmode=verify-ca if any server of that authority will do"
        }
        _ if is_an_authority(why) => {
            "it is its own authority: name its own file with sslrootcert=FILE, if it is the right one"
        }
        Error::InvalidCertificate(_) => "give the server a certificate that is valid",
        _ => return Some(why.to_string()),
    };
    Some(format!("{why}\n{hint}"))
}

fn signed(url: &PostgresUrl, provider: &Arc<CryptoProvider>, is_named: bool) -> Result<Trust, String> {
    let roots = roots(url)?;
    let mut store = RootCertStore::empty();
    for root in &roots {
        // A store of the system may hold what this library does not read; what is left out trusts nobody.
        let _ = store.add(root.clone());
    }
    if store.is_empty() {
        return Err(
            "there is no certificate of an authority that can be used: name a file with sslrootcert=FILE"
                .to_owned(),
        );
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
    let verifier = verifier.build().map_err(|error| format!("no TLS: {error}"))?;
    Ok(Trust::Signed { verifier, roots, is_named })
}

/// The file that the address names, that of the user, or the system's store.
fn roots(url: &PostgresUrl) -> Result<Vec<CertificateDer<'static>>, String> {
    let own = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".postgresql/root.crt"));
    let own = own.filter(|file| file.is_file());
    match (url.sslrootcert(), own) {
        (Some("system"), _) => Ok(system()),
        (Some(file), _) => file_roots(Path::new(file)),
        (None, Some(file)) => file_roots(&file),
        // Any server with a certificate of any of the system's authorities would do.
        (None, None) if url.sslmode() == SslMode::VerifyCa => {
            Err("sslmode=verify-ca asks for an authority: name its file with sslrootcert=FILE".to_owned())
        }
        (None, None) => Ok(system()),
    }
}

fn system() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn file_roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let file =
        std::fs::File::open(path).map_err(|error| format!("cannot read sslrootcert {shown}: {error}"))?;
    let read = file.take(MAX_ROOTS_BYTES + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| format!("cannot read sslrootcert {shown}: {error}"))?;
    if length as u64 > MAX_ROOTS_BYTES {
        return Err(format!("sslrootcert {shown} has more than {MAX_ROOTS_BYTES} bytes"));
    }
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let roots =
        roots.map_err(|error| format!("sslrootcert {shown} holds no certificates in PEM: {error}"))?;
    if roots.is_empty() {
        return Err(format!("sslrootcert {shown} holds no certificate in PEM"));
    }
    Ok(roots)
}

/// Who is believed.
#[derive(Debug)]
enum Trust {
    /// Whoever answers: nobody who only listens learns anything, one who answers in the server's place does.
    Anyone,
    /// Whom one of these authorities vouches for, by the name that was asked for if `is_named`.
    Signed { verifier: Arc<WebPkiServerVerifier>, roots: Vec<CertificateDer<'static>>, is_named: bool },
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    trust: Trust,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Trust::Signed { verifier, roots, is_named } = &self.trust else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last: the rest is well.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !is_named => Ok(ServerCertVerified::assertion()),
            // `openssl req -x509` makes a certificate that is its own authority, and a server that uses it is told by naming
            // just that. Its dates are looked at before this, its name is not.
            Err(error) if is_an_authority(&error) && roots.iter().any(|root| root == end_entity) => {
                if *is_named {
                    let parsed = rustls::server::ParsedCertificate::try_from(end_entity)?;
                    rustls::client::verify_server_name(&parsed, server_name)?;
                }
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The library's error for it has no name in its interface.
fn is_an_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(other)) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}
