# frozen_string_literal: true

# A database of its own, with a pool that is too small.
class TightRecord < ActiveRecord::Base
  self.abstract_class = true
  establish_connection("#{ENV.fetch("DATABASE_URL")}&pool=1&checkout_timeout=60")
end
