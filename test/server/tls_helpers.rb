# frozen_string_literal: true

require "open3"
require_relative "server_helpers"
require "support/certificates"

# Servers that speak TLS, and clients that believe their certificate.
module TLSHelpers
  include ServerHelpers

  def setup
    super
    @folder = Dir.mktmpdir
    @certificate, @key = TestCertificates.write(@folder, "site", TestCertificates.make("localhost", "127.0.0.1"))
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def serving_tls(app, parameters = "cert=#{@certificate}&key=#{@key}", **, &)
    serving(app, bind: ["tls://127.0.0.1:0?#{parameters}"], **, &)
  end

  # @return [OpenSSL::SSL::SSLSocket]
  def connect_tls(name: "localhost", socket: connect, session: nil, **settings)
    context = OpenSSL::SSL::SSLContext.new
    context.set_params({ ca_file: @certificate, verify_mode: OpenSSL::SSL::VERIFY_PEER, **settings })
    client = OpenSSL::SSL::SSLSocket.new(socket, context)
    client.sync_close = true
    client.hostname = name
    client.session = session if session
    Timeout.timeout(ServerHelpers::PATIENCE) { client.connect }
    client
  end

  # @return [String] what curl prints
  def curl_tls(path = "/", *flags)
    Open3.capture2e("curl", "-sS", *flags, "--cacert", @certificate, "https://localhost:#{port}#{path}",
                    "--resolve", "localhost:#{port}:127.0.0.1").first
  end

  def https(&) = Net::HTTP.start("127.0.0.1", port, use_ssl: true, ca_file: @certificate, &)
end
