# frozen_string_literal: true

require "test_helper"
require "heddle/databases"
require "heddle/databases/pools"
require "minitest/mock"

class PoolsTest < Minitest::Test
  Pools = Heddle::Databases::Pools

  def test_names_are_unique_and_utf8_whatever_an_application_chooses
    pools = ["\xFF", "\xFF", "é".encode("ISO-8859-1")].map { |pool| { pool:, library: "sequel" } }
    names = Pools.stub(:own, []) { Pools.stub(:sequel, pools) { Pools.all.map { |one| one[:pool] } } }

    assert_equal ["\\xFF", "\\xFF (2)", "é"], names
  end
end
