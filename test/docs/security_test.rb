# frozen_string_literal: true

# test: once

require "test_helper"

# Each test that the page on security names is there.
class SecurityPageTest < Minitest::Test
  NAMED = %r{`(test/[\w/]+\.rb)(?:#(test_\w+))?`}

  def test_tests_that_the_page_names_exist
    named = File.read(File.join(ROOT, "docs/security.md")).scan(NAMED)
    missing = named.reject do |file, name|
      path = File.join(ROOT, file)
      File.exist?(path) && (name.nil? || File.read(path).match?(/def #{name}$/))
    end

    assert_operator named.size, :>, 50
    assert_empty missing
  end
end
