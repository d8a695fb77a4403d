# frozen_string_literal: true

require "test_helper"
require_relative "tls_helpers"

class AltSvcTest < Minitest::Test
  include TLSHelpers

  VALUE = 'h3=":443"; ma=86400'
  APP = lambda do |env|
    fields = env["PATH_INFO"] == "/own" ? { "Alt-Svc" => "clear" } : {}
    [200, fields.freeze, env["PATH_INFO"] == "/parts" ? Enumerator.new { |parts| parts << "a" } : ["hello"]]
  end

  def test_responses_over_tls_have_the_field_in_both_versions
    serving_tls(APP, lint: false, alt_svc: VALUE) do
      https do |http|
        assert_equal VALUE, http.get("/")["alt-svc"]
        assert_equal VALUE, http.get("/parts")["alt-svc"]
      end
      assert_match(%r{\AHTTP/2 200.*^alt-svc: h3=":443"; ma=86400\r$}m, curl_tls("/", "--http2", "-I"))
    end
  end

  def test_an_application_keeps_its_own
    serving_tls(APP, lint: false, alt_svc: VALUE) do
      https { |http| assert_equal ["clear"], http.get("/own").get_fields("alt-svc") }
    end
  end

  def test_plain_responses_do_not_have_it
    serving(APP, lint: false, alt_svc: VALUE) { assert_nil get("/")["alt-svc"] }
  end

  def test_values_of_the_grammar_are_allowed
    ["clear", VALUE, %(h3=":443", h3-29="alt.example:8443";persist=1), %(h2="[::1]:65535"), %(h3=":1" ; a="b c")]
      .each { |value| assert_equal value, Heddle::Server::Configuration.new(alt_svc: value).alt_svc }
  end

  def test_other_values_are_a_mistake
    ["", "h3=:443", %(h3=":443"; ma), %(h3=":70000"), %(h3=":0"), %(h3="a"), %(h3=":443"\r\nx: y), %(h3=":443"\n),
     %(h3=":443",), %(h3="\u00e9:443"), %( h3=":443")].each do |value|
      error = assert_raises(Heddle::Server::ConfigurationError, value) do
        Heddle::Server::Configuration.new(alt_svc: value)
      end
      assert_match(/alt_svc .* must be clear, or alternatives such as h3=":443"; ma=86400/, error.message)
    end
  end
end
