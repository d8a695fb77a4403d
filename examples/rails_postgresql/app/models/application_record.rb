# frozen_string_literal: true

# All models inherit from it.
class ApplicationRecord < ActiveRecord::Base
  primary_abstract_class
end
