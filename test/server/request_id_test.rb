# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

class RequestIdTest < Minitest::Test
  include ServerHelpers

  UUID = /\A\h{8}-\h{4}-7\h{3}-\h{4}-\h{12}\z/

  def app
    @seen = []
    lambda do |env|
      @seen << env["HTTP_X_REQUEST_ID"]
      [200, {}.freeze, ["hello"]]
    end
  end

  def test_a_request_without_one_gets_one_in_env_answer_and_log
    answer = nil
    serving(app, lint: false, request_id: true) { answer = get("/") }

    assert_match UUID, answer["x-request-id"]
    assert_equal [answer["x-request-id"]], @seen
    assert_match(/ for 127\.0\.0\.1 \[#{answer["x-request-id"]}\]\n/, output.string)
  end

  def test_a_proxy_on_this_machine_may_name_it
    answer = nil
    serving(app, lint: false, request_id: true) { answer = get("/", "x-request-id" => "a-1") }

    assert_equal "a-1", answer["x-request-id"]
    assert_equal ["a-1"], @seen
  end

  def test_an_invalid_id_is_replaced
    serving(app, lint: false, request_id: true) do
      ["a b", "\"", "x" * 201, "a\u00e9", ""].each do |name|
        assert_match UUID, get("/", "x-request-id" => name)["x-request-id"], name
      end
    end
  end

  def test_ids_of_untrusted_clients_are_replaced
    answer = nil
    serving(app, lint: false, request_id: true, trusted_proxies: []) { answer = get("/", "x-request-id" => "a-1") }

    assert_match UUID, answer["x-request-id"]
    assert_equal [answer["x-request-id"]], @seen
  end

  def test_an_id_of_a_trusted_proxy_is_kept_for_any_client
    serving(app, lint: false, request_id: true) do
      assert_equal "a-1", get("/", "x-request-id" => "a-1", "x-forwarded-for" => "192.0.2.1")["x-request-id"]
    end
  end

  def test_in_threads_too
    serving(app, lint: false, request_id: true, mode: :thread) do
      assert_equal "a-1", get("/", "x-request-id" => "a-1")["x-request-id"]
    end
  end

  def test_an_application_may_answer_with_its_own
    own = ->(_env) { [200, { "x-request-id" => "mine" }, []] }
    serving(own, request_id: true) { assert_equal "mine", get("/")["x-request-id"] }
  end

  def test_by_default_there_is_none
    serving(app) { assert_nil get("/")["x-request-id"] }

    assert_equal [nil], @seen
  end
end
