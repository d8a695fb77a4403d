# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/served_process"
require "tmpdir"

# What the README shows is true: its programs print what stands under them, its application is
# served, its links lead somewhere.
class ReadmeTest < Minitest::Test
  README = File.read(File.join(ROOT, "README.md"))
  SNIPPET = /^```ruby\n(?<program>.*?)^```\n(?:\n```output\n(?<output>.*?)^```$)?/m
  APPLICATION = "# config.ru\n"

  snippets = README.to_enum(:scan, SNIPPET).map { Regexp.last_match.named_captures }
  applications, programs = snippets.partition { |snippet| snippet["program"].start_with?(APPLICATION) }

  programs.each_with_index do |snippet, index|
    define_method(:"test_program_#{index + 1}_prints_what_stands_under_it") do
      refute_nil snippet["output"], "nothing says what this prints:\n#{snippet["program"]}"
      printed, status = Open3.capture2e(RbConfig.ruby, "-I#{ROOT}/lib", stdin_data: snippet["program"])

      assert_predicate status, :success?, printed
      assert_equal snippet["output"], printed
    end
  end

  define_method(:test_the_readme_has_programs_and_an_application) do
    assert_operator programs.size, :>=, 5
    assert_equal 1, applications.size
  end

  applications.each do |snippet|
    define_method(:test_the_application_is_served) do
      Dir.mktmpdir do |folder|
        File.write(File.join(folder, "config.ru"), snippet["program"])
        served = ServedProcess.new([*ServedProcess::HEDDLE, "serve", "--port", "0"], folder: folder)

        assert_equal "Hello from HTTP/1.1\n", served.get("/").body
      ensure
        served&.stop
      end
    end
  end

  def test_links_lead_to_files_that_exist
    links = README.scan(/\]\(([^)#:]+)\)|(?:src|srcset)="([^":]+)"/).flatten.compact

    assert_operator links.size, :>, 5
    assert_empty(links.reject { |path| File.exist?(File.join(ROOT, path)) })
  end
end
