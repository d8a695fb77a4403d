# frozen_string_literal: true

require "openssl"
require "tmpdir"

# Certificates that tests show, made when they are asked for.
module TestCertificates
  module_function

  # @param names [Array<String>] the first is the subject's, too
  # @param key [OpenSSL::PKey::PKey]
  # @param ca [Array, nil] certificate and key of who signs; nil: it signs itself
  # @return [Array] certificate and key
  def make(*names, key: OpenSSL::PKey::EC.generate("prime256v1"), ca: nil, authority: false, life: 30 * 86_400)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = OpenSSL::BN.rand(64)
    certificate.subject = OpenSSL::X509::Name.new([["CN", names.first]])
    certificate.issuer = ca ? ca.first.subject : certificate.subject
    certificate.public_key = key
    certificate.not_before = Time.now - 7_200
    certificate.not_after = Time.now + life
    factory = OpenSSL::X509::ExtensionFactory.new(ca&.first || certificate, certificate)
    list = names.map { |name| name.match?(/\A[\d.]+\z|:/) ? "IP:#{name}" : "DNS:#{name}" }.join(",")
    certificate.add_extension(factory.create_extension("subjectAltName", list))
    certificate.add_extension(factory.create_extension("basicConstraints", authority ? "CA:TRUE" : "CA:FALSE", true))
    certificate.sign(ca ? ca.last : key, "SHA256")
    [certificate, key]
  end

  # Writes them into a folder.
  # @return [Array<String>] the paths of the certificate and the key
  def write(folder, name, pair, chain: [])
    certificate, key = pair
    paths = [File.join(folder, "#{name}.pem"), File.join(folder, "#{name}.key")]
    File.write(paths.first, [certificate, *chain].map(&:to_pem).join)
    File.write(paths.last, key.private_to_pem)
    paths
  end
end
