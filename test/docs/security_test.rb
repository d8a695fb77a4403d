# frozen_string_literal: true

require "test_helper"
require "support/h2_attacks"

# Each test that the page on security names is there.
class SecurityPageTest < Minitest::Test
  PAGE = File.read(File.join(ROOT, "docs/security.md"))
  NAMED = %r{`(test/[\w/]+\.rb)(?:#(test_\w+))?`}
  # Tests that are made of a table: the file, and words of the table in parentheses.
  MADE = %r{`(test/[\w/]+\.rb)` \(([^)]+)\)}

  def test_tests_that_the_page_names_exist
    named = PAGE.scan(NAMED)
    missing = named.reject do |file, name|
      path = File.join(ROOT, file)
      File.exist?(path) && (name.nil? || File.read(path).match?(/def #{name}$/))
    end

    assert_operator named.size, :>, 100
    assert_empty missing
  end

  def test_attacks_and_targets_that_the_page_names_exist
    targets = Dir[File.join(ROOT, "test/fuzz/*_fuzz.c")].map { |path| path[/(\w+)_fuzz/, 1] }
    known = { "test/server/http2_attacks_test.rb" => H2Attacks.all.values.map(&:name),
              "test/fuzz/fuzz_test.rb" => targets }
    named = PAGE.scan(MADE).flat_map { |file, words| words.split("; ").map { |word| [file, word] } }

    assert_operator named.size, :>, 15
    assert_empty named.reject { |file, word| known.fetch(file).include?(word) }
  end

  def test_each_attack_has_a_test_or_a_reason
    rows = PAGE[/^## Published attacks\n.*/m].scan(/^\| (.*) \|$/).flatten.drop(2)

    assert_operator rows.size, :>, 40
    assert_empty rows.reject { |row| row.match?(NAMED) || row.include?("does not apply") }
  end
end
