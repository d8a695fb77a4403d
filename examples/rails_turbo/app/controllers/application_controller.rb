# frozen_string_literal: true

# All controllers inherit from it.
class ApplicationController < ActionController::Base
end
