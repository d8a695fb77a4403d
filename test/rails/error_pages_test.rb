# frozen_string_literal: true

# test: long

require "test_helper"
require "cli/demo/browser"
require "fileutils"
require "support/bundle"
require "support/served_process"
require "tmpdir"

# What Rails shows in development, in Chromium: error pages, with web-console, routes, and previews of mails.
class RailsErrorPagesTest < Minitest::Test
  GEMFILE = File.expand_path("bundles/rails_8_1/Gemfile", __dir__)
  APPLICATION = File.expand_path("support/errors.ru", __dir__)
  PREVIEW = <<~RUBY
    class LettersPreview < ActionMailer::Preview
      def greeting = Letters.greeting
    end
  RUBY
  MODES = [%w[--mode fiber], %w[--mode fiber --protect off], %w[--mode thread], %w[--mode single]].freeze
  private_constant :GEMFILE, :APPLICATION, :PREVIEW, :MODES

  def self.installed? = defined?(@installed) ? @installed : (@installed = Bundle.installed?(GEMFILE))

  # The mailers' previews, for all servers of these tests.
  def self.folder
    @folder ||= Dir.mktmpdir.tap do |folder|
      FileUtils.mkdir_p(File.join(folder, "previews"))
      File.write(File.join(folder, "previews/letters_preview.rb"), PREVIEW)
      Minitest.after_run { FileUtils.rm_rf(folder) }
    end
  end

  def serving(options = MODES.first)
    skip "needs the gems of test/rails/bundles/rails_8_1: bin/setup" unless self.class.installed?
    command = [*ServedProcess::HEDDLE, "serve", APPLICATION, "-b", "127.0.0.1:0", *options]
    yield ServedProcess.shared(command, folder: self.class.folder, environment: Bundle.environment(GEMFILE))
  end

  def page(served, path, type = "text/html") = Net::HTTP.get_response(served.at(path), { "accept" => type })

  def browser = Browser.shared(need_program("chromium"), need_program("chromedriver"))

  MODES.each do |options|
    define_method("test_errors_and_unknown_paths_have_their_pages_with_#{options.join("_").delete("-")}") do
      serving(options) do |served|
        assert_equal "fine", page(served, "/fine").body, served.output
        failed = page(served, "/fail")

        assert_equal "500", failed.code
        assert_includes failed.body, "on purpose, not 43"
        unknown = page(served, "/nowhere")

        assert_equal "404", unknown.code
        assert_includes unknown.body, "No route matches"
        assert_includes page(served, "/fail", "application/json").body, "on purpose, not 43"
      end
    end
  end

  def test_the_error_page_shows_the_source_and_its_console_evaluates
    serving do |served|
      browser.visit(served.at("/fail").to_s)

      assert_includes browser.text("h1"), "RuntimeError in PagesController#fail"
      assert_includes browser.text("body"), 'raise "on purpose, not #{secret + 1}"' # rubocop:disable Lint/InterpolationCheck
      assert browser.wait_for("document.querySelector('#console .console-inner')")
      browser.click("#console .console-inner")
      browser.press(*"secret * 2".chars, Browser::ENTER)

      assert browser.wait_for("document.querySelector('#console').innerText.includes('=> 84')")
    end
  end

  def test_an_unknown_path_shows_the_routes
    serving do |served|
      browser.visit(served.at("/nowhere").to_s)

      assert_includes browser.text("body"), "No route matches [GET] \"/nowhere\""
      assert_includes browser.text("#route_table, #route-table"), "/fail(.:format)"
    end
  end

  def test_previews_of_mails_are_shown
    serving do |served|
      browser.visit(served.at("/rails/mailers").to_s)

      assert_includes browser.text("body"), "greeting"
      browser.visit(served.at("/rails/mailers/letters/greeting").to_s)

      assert_includes browser.text("body"), "Greeting"
      assert browser.wait_for("document.querySelector('iframe').contentDocument?.querySelector('#greeting')")
    end
  end
end
