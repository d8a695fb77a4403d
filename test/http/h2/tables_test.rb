# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# The tables of HPACK in C are what their script writes.
class H2TablesTest < Minitest::Test
  def test_the_script_writes_the_committed_tables
    written, status = Open3.capture2(RbConfig.ruby, File.join(ROOT, "bin/support/hpack_tables.rb"))

    assert_predicate status, :success?
    assert_equal File.read(File.join(ROOT, "ext/heddle/http/h2/tables.c")), written
  end
end
