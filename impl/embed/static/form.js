import {onSubmit} from './page.js';

onSubmit(document.querySelector('form'), {
  done: () => 'Thank you. We have received what you sent.',
});
