# frozen_string_literal: true

# test: smoke

require "test_helper"
require "heddle/cli/demo"
require "json"
require "rack/lint"
require "rack/mock_request"

# The demo as a Rack application, without a server. What needs one is in demo_test.rb.
class DemoAppTest < Minitest::Test
  Demo = Heddle::CLI::Demo

  def setup
    @request = Rack::MockRequest.new(Rack::Lint.new(Demo.new))
  end

  def test_page_has_a_section_and_a_link_for_each_panel
    page = @request.get("/")

    assert_equal 200, page.status
    %w[fifty live].each do |panel|
      assert_includes page.body, "<section class=\"panel wrap\" id=\"#{panel}\""
      assert_includes page.body, "<a href=\"##{panel}\">"
    end
  end

  def test_page_and_its_files_name_no_other_host
    page = @request.get("/")
    linked = page.body.scan(/(?:src|href)="([^"#]+)"/).flatten

    assert_operator linked.size, :>=, 4
    linked.each { |path| assert_equal 200, @request.get(path).status, path }
    texts = [page.body, *linked.map { |path| @request.get(path).body }]
    hosts = texts.map(&:b).join.scan(%r{(?:https?:)?//[a-z0-9][\w.-]*\.\w+[^\s"]*}).uniq - ["http://www.w3.org/2000/svg"]

    assert_empty hosts
    assert_match(/default-src 'self'/, page["content-security-policy"])
  end

  def test_files_imported_by_scripts_exist
    style = @request.get("/").body[/href="([^"]+\.css)"/, 1]
    folder = File.dirname(style)
    imports = []
    Dir.children(File.join(ROOT, "lib/heddle/cli/demo/assets")).grep(/\.js\z/).each do |name|
      imports += @request.get("#{folder}/#{name}").body.scan(/from "([^"]+)"/).flatten
    end

    assert_operator imports.size, :>=, 5
    imports.each { |path| assert_equal 200, @request.get(File.expand_path(path, folder)).status, path }
  end

  def test_files_are_immutable_and_their_path_changes_with_the_content
    style = @request.get("/").body[/href="([^"]+\.css)"/, 1]

    assert_includes @request.get(style)["cache-control"], "immutable"
    assert_equal 404, @request.get(style.sub(%r{/assets/\h+/}, "/assets/000000000000/")).status
  end

  def test_page_shows_the_source_of_what_runs
    source = Demo.source_of(Demo.instance_method(:sleeper))

    assert_match(/\Adef sleeper\(env\)\n.*^  sleep seconds\n.*\nend\n\z/m, source)
    assert_includes @request.get("/").body, "  sleep seconds\n"
  end

  def test_sleep_answers_after_the_given_seconds
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    answer = @request.get("/sleep?seconds=0.05")

    assert_equal "slept 0.05 s\n", answer.body
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :>=, 0.05
  end

  def test_a_second_test_is_refused_until_the_body_of_the_first_is_closed
    app = Demo.new(urls: -> { ["http://127.0.0.1:1"] })
    burst = -> { app.call(Rack::MockRequest.env_for("/burst?clients=1")) }
    status, _, body = burst.call

    assert_equal [200, 503], [status, burst.call.first]
    body.close

    assert_equal 200, burst.call.first
  end

  def test_wrong_number_is_refused_with_the_allowed_range
    ["seconds=abc", "seconds=-1", "seconds=11", "seconds=", "seconds=nan", "seconds=%ff"].each do |query|
      answer = @request.get("/sleep?#{query}")

      assert_equal 400, answer.status, query
      assert_includes answer.body, "seconds must be a number from 0.0 to 10.0"
    end
  end

  def test_hello_has_the_body_that_the_crowd_checks
    assert_equal Demo::HELLO, @request.get("/hello").body
  end

  def test_crowd_is_refused_to_other_sites_and_above_its_limit
    assert_equal 403, @request.get("/burst?clients=1", "HTTP_SEC_FETCH_SITE" => "cross-site").status
    ["clients=0", "clients=257", "clients=many"].each do |query|
      assert_equal 400, @request.get("/burst?#{query}").status, query
    end
  end

  def test_block_is_refused_unless_the_button_was_pressed
    assert_equal 403, @request.get("/block?way=ruby").status
    assert_equal 400, @request.get("/block?way=other").status
    assert_equal 403, @request.get("/fifty?way=ruby", "HTTP_SEC_FETCH_SITE" => "cross-site").status
  end

  def test_others_run_while_a_request_waits_for_a_lock
    order = []
    enabled = Heddle.enabled.include?(:offload)
    Heddle.enable(:offload)
    Heddle.run do
      Heddle.async { order << :blocked if Demo::Blockade.wait(0.2) || true }
      Heddle.async { order << :other if sleep 0.01 }
    end

    assert_equal %i[other blocked], order
  ensure
    Heddle.disable(:offload) unless enabled
  end

  def test_pulse_ends_when_the_server_stops
    stopping = Struct.new(:urls, :stopping?, :engine, :statistics).new([], true)
    request = Rack::MockRequest.new(Rack::Lint.new(Demo.new(server: stopping)))

    assert_equal 1, request.get("/pulse").body.lines.size
  end

  def test_head_has_the_headers_of_get_and_no_body
    answer = @request.head("/")

    assert_equal 200, answer.status
    assert_empty answer.body
    assert_equal @request.get("/")["content-length"], answer["content-length"]
  end

  def test_other_paths_and_methods_are_refused
    assert_equal([404, "There is no /nowhere here. The demo is at /.\n"],
                 @request.get("/nowhere").then { |answer| [answer.status, answer.body] })
    assert_equal 404, @request.get("/assets/../demo.rb").status
    post = @request.post("/sleep")

    assert_equal [405, "GET, HEAD"], [post.status, post["allow"]]
  end
end
