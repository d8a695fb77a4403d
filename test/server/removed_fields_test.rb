# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/served_process"
require "tmpdir"

# Fields of requests that don't reach the application are logged, once in each process.
class RemovedFieldsTest < Minitest::Test
  ENV_OF = "run ->(env) { [200, {}, [env.slice('rack.url_scheme', 'HTTP_API_KEY').inspect]] }\n"
  private_constant :ENV_OF

  def serve(*options)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), ENV_OF)
      command = [*ServedProcess::HEDDLE, "serve", "-b", "127.0.0.1:0", "-e", "none", "--workers", "0", *options]
      served = ServedProcess.new(command, folder:)
      yield served
      served.stop
      served.output
    ensure
      served&.stop
    end
  end

  def test_first_removal_of_forwarding_fields_is_logged
    output = serve("--trusted-proxies", "192.0.2.0/24") do |served|
      Net::HTTP.get(served.at("/"), { "x-forwarded-for" => "192.0.2.7" })
      3.times { assert_match(/"http"/, Net::HTTP.get(served.at("/"), { "x-forwarded-proto" => "https" })) }
    end

    line = "X-Forwarded-* of a request from 127.0.0.1, because this address is not in trusted_proxies"

    assert_equal 1, output.scan(line).size
  end

  def test_nothing_is_logged_of_a_client_that_is_trusted_or_sends_no_scheme
    trusted = serve { |served| Net::HTTP.get(served.at("/"), { "x-forwarded-proto" => "https" }) }
    untrusted = serve("--trusted-proxies", "192.0.2.0/24") do |served|
      Net::HTTP.get(served.at("/"), { "x-forwarded-for" => "192.0.2.7", "client-ip" => "1.1.1.1" })
    end

    refute_match(/were removed/, trusted + untrusted)
  end

  def curl(served, *flags) = Open3.capture2(need_program("curl"), "-sS", *flags, served.at("/a?b").to_s).first

  { "HTTP/1.1" => "--http1.1", "HTTP/2" => "--http2-prior-knowledge" }.each do |version, flag|
    define_method("test_first_field_with_an_underscore_is_logged_over_#{version.delete("/.").downcase}") do
      output = serve { |served| 2.times { refute_match(/API_KEY/, curl(served, flag, "-H", "api_key: 1")) } }

      assert_equal 1, output.scan("removed a header from the request for /a?b: its name contains an underscore").size
    end

    define_method("test_nothing_is_logged_of_other_fields_over_#{version.delete("/.").downcase}") do
      fields = ["x-a: 1", "cookie: a=1", "cookie: b=2", "x-b;"].flat_map { |field| ["-H", field] }
      output = serve { |served| curl(served, flag, *fields) }
      kept = serve("--underscore-headers") { |served| assert_match(/API_KEY/, curl(served, flag, "-H", "api_key: 1")) }

      refute_match(/underscore/, output + kept)
    end
  end
end
