# frozen_string_literal: true

# Leaves a note by a job.
class ShoutsController < ApplicationController
  skip_forgery_protection

  def create
    ShoutJob.perform_later(params.require(:text))
    head :accepted
  end
end
