# frozen_string_literal: true

require "test_helper"
require_relative "../../../benchmark/apps/crawl"

# Which pages the benchmark of applications finds, and which of them it counts as the same.
class BenchmarkCrawlTest < Minitest::Test
  Answer = Struct.new(:code, :body, :type) do
    def [](_field) = type
  end

  # A server with pages that are made by a block.
  class Server
    attr_reader :host

    def initialize(**pages)
      @host = "localhost"
      @pages = pages
    end

    def get(path)
      page = @pages[path.delete("/").to_sym] or return Answer.new("404", "", "text/html")
      Answer.new("200", page.call, path.end_with?("a") ? "text/plain" : "text/html")
    end
  end

  def crawl(first, second = first, start: ["/"], count: 20) = Bench::Apps::Crawl.new(first, second, start, count)

  def page(*links, text: "") = -> { "#{links.map { |link| %(<a href="#{link}">x</a>\n) }.join}#{text}" }

  def test_links_of_the_same_server_are_followed_and_others_are_not
    server = Server.new("": page("/b", "http://localhost:9/c", "d", "//else/b", "https://else/b", "/logout", "/a"),
                        b: page("/"), c: page, d: page, logout: page, a: page)

    assert_equal %w[/ /b /c /d], crawl(server).paths
    assert_equal %w[/ /b], crawl(server, count: 2).paths
  end

  def test_path_that_is_given_need_not_be_a_page
    assert_equal ["/a"], crawl(Server.new(a: page("/b"), b: page), start: ["/a"]).paths
  end

  def test_line_that_differs_on_one_server_is_a_token
    tokens = ->(text) { -> { "token #{rand}\n#{text}" } }

    assert_empty crawl(Server.new("": tokens["same"]), Server.new("": tokens["same"])).differing
    assert_equal ["/"], crawl(Server.new("": tokens["same"]), Server.new("": tokens["other"])).differing
    assert_equal ["/"], crawl(Server.new("": tokens["same"]), Server.new("": tokens["same\nmore"])).differing
  end
end
