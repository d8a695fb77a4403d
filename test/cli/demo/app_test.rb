# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "json"
require "rack/lint"
require "rack/mock_request"

# The demo as a Rack application, without a server. What needs one is in demo_test.rb.
class DemoAppTest < Minitest::Test
  Demo = Heddle::CLI::Demo

  def setup
    @request = Rack::MockRequest.new(Rack::Lint.new(Demo.app))
  end

  def test_the_page_has_a_section_and_a_link_for_every_panel
    page = @request.get("/")

    assert_equal 200, page.status
    Demo::Panels::ALL.map(&:new).each do |panel|
      assert_includes page.body, "<section class=\"panel wrap\" id=\"#{panel.slug}\""
      assert_includes page.body, "<a href=\"##{panel.slug}\">#{panel.title}</a>"
    end
  end

  def test_a_panel_is_one_class_in_the_list
    panel = Class.new(Demo::Panel) do
      def slug = "new"
      def title = "A new one"
      def lead = "<p>lead</p>"
      def stage = "<p>stage</p>"
      def routes = { "/new" => ->(_env) { Demo::Answer.text(200, "here\n") } }
    end
    request = Rack::MockRequest.new(Rack::Lint.new(Demo.new(panels: [panel])))

    assert_includes request.get("/").body, "A new one"
    assert_equal "here\n", request.get("/new").body
  end

  def test_the_page_and_its_files_name_no_other_host
    page = @request.get("/")
    linked = page.body.scan(/(?:src|href)="([^"#]+)"/).flatten

    assert_operator linked.size, :>, 4
    linked.each { |path| assert_equal 200, @request.get(path).status, path }
    texts = [page.body, *linked.reject { |path| path.end_with?(".woff2") }.map { |path| @request.get(path).body }]
    hosts = texts.map(&:b).join.scan(%r{(?:https?:)?//[a-z0-9][\w.-]*\.\w+[^\s"]*}).uniq - ["http://www.w3.org/2000/svg"]

    assert_empty hosts
    assert_match(/default-src 'self'/, page["content-security-policy"])
  end

  def test_every_file_that_a_script_or_style_imports_is_there
    style = @request.get("/").body[/href="([^"]+\.css)"/, 1]
    folder = File.dirname(style)
    imports = @request.get(style).body.scan(/url\("([^"]+)"\)/).flatten
    Dir.children(File.join(ROOT, "lib/heddle/cli/demo/assets")).grep(/\.js\z/).each do |name|
      imports += @request.get("#{folder}/#{name}").body.scan(/from "([^"]+)"/).flatten
    end

    assert_operator imports.size, :>, 5
    imports.each { |path| assert_equal 200, @request.get(File.expand_path(path, folder)).status, path }
  end

  def test_files_may_be_kept_for_good_and_change_their_path_with_their_content
    style = @request.get("/").body[/href="([^"]+\.css)"/, 1]

    assert_includes @request.get(style)["cache-control"], "immutable"
    assert_equal 404, @request.get(style.sub(%r{/assets/\h+/}, "/assets/000000000000/")).status
  end

  def test_the_page_shows_the_source_of_what_runs
    source = Demo::Panel.source_of(Demo::Song.instance_method(:each))

    assert_match(/\Adef each\n  @bottles\.downto\(1\).*\nend\n\z/m, source)
    assert_includes @request.get("/").body, "@bottles.downto(1) do |number|"
  end

  def test_sleep_answers_after_the_seconds_asked_for
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    answer = @request.get("/sleep?seconds=0.05")

    assert_equal "slept 0.05 s\n", answer.body
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - began, :>=, 0.05
  end

  def test_a_number_that_is_none_or_out_of_bounds_is_refused_and_says_what_would_do
    ["seconds=abc", "seconds=-1", "seconds=11", "seconds=", "seconds=nan", "seconds=%ff"].each do |query|
      answer = @request.get("/sleep?#{query}")

      assert_equal 400, answer.status, query
      assert_includes answer.body, "seconds has to be a number from 0.0 to 10.0"
    end
    assert_equal 400, @request.get("/bottles?from=100").status
    assert_equal 400, @request.get("/bottles?from=1.5").status
  end

  def test_hello_is_answered_at_once
    assert_equal Demo::Panels::Live::HELLO, @request.get("/hello").body
  end

  def test_a_crowd_is_sent_by_this_page_alone_and_has_a_size
    assert_equal 403, @request.get("/burst?clients=1", "HTTP_SEC_FETCH_SITE" => "cross-site").status
    ["clients=0", "clients=257", "clients=many"].each do |query|
      assert_equal 400, @request.get("/burst?#{query}").status, query
    end
  end

  def test_what_would_go_on_for_long_ends_when_the_server_stops
    stopping = Struct.new(:urls, :stopping?, :engine, :statistics).new([], true)
    request = Rack::MockRequest.new(Rack::Lint.new(Demo.app(server: stopping)))

    assert_equal "The bar closes.\n", request.get("/bottles?pause=0").body.lines.last
    assert_equal 1, request.get("/pulse").body.lines.size
  end

  def test_the_song_counts_down_to_none
    lines = @request.get("/bottles?from=2&pause=0").body.lines

    assert_equal ["2 bottles of beer on the wall. Take one down, pass it around.\n",
                  "1 bottle of beer on the wall. Take one down, pass it around.\n",
                  "No more bottles of beer on the wall.\n"], lines
  end

  def test_facts_tell_what_is_known_without_a_loop
    facts = JSON.parse(@request.get("/facts").body)

    assert_equal RUBY_VERSION, facts["ruby"]
    assert_equal Heddle::VERSION, facts["heddle"]
    assert_equal Process.pid, facts["pid"]
    assert_nil facts["fibers"]
  end

  def test_head_has_the_head_of_get_and_no_body
    answer = @request.head("/")

    assert_equal 200, answer.status
    assert_empty answer.body
    assert_equal @request.get("/")["content-length"], answer["content-length"]
  end

  def test_other_paths_and_methods_get_an_answer_that_says_what_to_do
    assert_equal([404, "There is no /nowhere here. The demo is at /.\n"],
                 @request.get("/nowhere").then { |answer| [answer.status, answer.body] })
    assert_equal 404, @request.get("/assets/../demo.rb").status
    post = @request.post("/sleep")

    assert_equal [405, "GET, HEAD"], [post.status, post["allow"]]
  end
end
