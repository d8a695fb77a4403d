# frozen_string_literal: true

require "test_helper"
require_relative "served_example"
require_relative "support/proxies"
require_relative "../cli/demo/browser"

# A Rails application behind the proxies of examples/deploy, in a browser: log in by a form, be redirected with a
# cookie, and talk over Action Cable. Rails asks for early hints on its own.
class RailsProxiesTest < Minitest::Test
  include Proxies

  APPLICATION = File.expand_path("support/login.ru", __dir__)

  def setup
    super
    skip "needs the gems of examples/rails_postgresql: bin/setup" unless ServedExample.gems?("rails_postgresql")
  end

  def serve(*arguments, **)
    environment = ServedExample.bundle("rails_postgresql").merge("RAILS_ENV" => "production", "HEDDLE_WORKERS" => "0")
    @served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", *arguments, APPLICATION], folder: @folder,
                                                                                            environment:, **)
  end

  def test_nginx
    program = need_program("nginx")
    socket = path("http.sock")
    serve("--bind", "unix:#{socket}?mode=666", "--early-hints", "on", address: /serves .* on (\S+)$/)

    run_nginx(program, socket).each { |url| a_user_logs_in(url, %w[200]) }
  end

  def test_haproxy
    program = need_program("haproxy")
    serve("--bind", "127.0.0.1:0", "--early-hints", "always")
    plain, secure = run_haproxy(program, @served.uri.port)

    a_user_logs_in(secure, %w[103 200])

    assert_equal %w[103 200], statuses("#{plain}/session/new")
  end

  # @param responses [Array<String>] to the request for the form, the interim ones included
  def a_user_logs_in(url, responses)
    assert_equal [%w[302], responses], [statuses("#{url}/"), statuses("#{url}/session/new")]
    @browser ||= Browser.new(need_program("chromium"), need_program("chromedriver"), insecure: true)
    @browser.visit("#{url}/session/new") # another port's cookie is this one's, too
    @browser.run("document.querySelector('input[name=name]').value = 'ada'")
    @browser.click("button")

    echoed = @browser.wait_for("document.body.dataset.echo", seconds: PATIENCE)

    assert echoed, "#{url}: #{@browser.console}\n#{@served.output}"
    assert_equal ["ada", "hello, ada", "/"],
                 @browser.run("return [document.body.dataset.name, document.body.dataset.echo, location.pathname]")
    assert_empty @browser.console
  end
end
